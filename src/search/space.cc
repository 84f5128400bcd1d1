// SPDX-License-Identifier: Apache-2.0
#include "search/space.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/random.h"
#include "base/result.h"
#include "config/decode.h"
#include "search/domain.h"
#include "search/parallelism.h"
#include "search/paths.h"
#include "search/settings.h"
#include "search/shapes.h"

namespace dynosim::search {
namespace {

using Roles = std::vector<std::string_view>;

constexpr std::size_t kMaxShapes = 1'000'000;
constexpr std::string_view kAggregated = "aggregated";
constexpr std::string_view kDisaggregated = "disaggregated";

std::string RolePath(std::string_view role) { return "engine.workers." + std::string(role); }

Dimension Choices(const std::string& path, const std::vector<Json>& values) {
  Dimension dimension;
  for (const Json& value : values) {
    dimension.options.push_back({{.path = path, .value = value}});
  }
  return dimension;
}

// Builds one branch.
class BranchBuilder {
 public:
  BranchBuilder(Json base, const SearchSettings& settings, const std::string& where)
      : base_(std::move(base)), settings_(settings), where_(where) {}

  Result<Branch> Build(std::string_view mode, bool mode_is_searched);

 private:
  void KeepRoles(std::string_view mode);
  Result<void> MakeRoles();
  Result<void> AddDomains(const Json& value, const std::string& path);
  Result<void> AddDomain(const Json& value, const std::string& path);
  void AddDefault(const std::string& path, const std::vector<Json>& values);
  void AddDefaults();
  Result<void> AddParallelism();
  Result<void> AddGenerated(const Roles& roles);
  void DropImpossibleBackends();

  Json base_;
  const SearchSettings& settings_;
  const std::string& where_;
  Roles roles_;
  std::vector<Dimension> dimensions_;
};

// Fields of the other topology do not belong to this branch.
void BranchBuilder::KeepRoles(std::string_view mode) {
  for (const std::string_view role : {"aggregated", "prefill", "decode"}) {
    if (std::ranges::find(roles_, role) == roles_.end()) {
      RemovePath(base_, RolePath(role));
    }
  }
  if (mode == kAggregated) {
    RemovePath(base_, "engine.kv_transfer");
  }
}

// Defaults go into these mappings, so nothing else may be in their place.
Result<void> BranchBuilder::MakeRoles() {
  for (const std::string_view role : roles_) {
    const std::string path = RolePath(role);
    if (FindPath(base_, path) == nullptr) {
      SetPath(base_, path, Json(Json::Object()));
    }
    for (const std::string& mapping : {path, path + ".scheduler", path + ".parallelism"}) {
      const Json* value = FindPath(base_, mapping);
      if (value != nullptr && !value->is_object()) {
        return UsageError(where_, mapping + ": must be a mapping, got " + config::Shown(*value));
      }
    }
  }
  return {};
}

Result<void> BranchBuilder::AddDomain(const Json& value, const std::string& path) {
  const std::optional<FieldKind> kind = DomainKind(path);
  if (!kind) {
    return UsageError(where_, path +
                                  ": takes no choices or range; domains are for engine.mode, "
                                  "engine.backend, parallelism, scheduler, kv_cache.block_size, "
                                  "memory_fraction, numbers of traffic.load, and router");
  }
  DYNO_TRY(const Domain domain, ReadDomain(value, path, *kind, where_));
  if (domain.open) {
    dimensions_.push_back({.options = {}, .path = path, .open = domain.open});
  } else {
    dimensions_.push_back(Choices(path, domain.values));
  }
  return {};
}

Result<void> BranchBuilder::AddDomains(const Json& value, const std::string& path) {
  if (IsDomain(value)) {
    return AddDomain(value, path);
  }
  if (!value.is_object()) {
    return {};
  }
  for (const Json::Member& member : value.object()) {
    if (member.first == "preset" && path.ends_with(".parallelism")) {
      continue;
    }
    DYNO_TRY_VOID(
        AddDomains(member.second, path.empty() ? member.first : path + "." + member.first));
  }
  return {};
}

void BranchBuilder::AddDefault(const std::string& path, const std::vector<Json>& values) {
  if (FindPath(base_, path) == nullptr) {
    dimensions_.push_back(Choices(path, values));
  }
}

// What a search varies when the document does not say.
void BranchBuilder::AddDefaults() {
  AddDefault("engine.backend", {"vllm", "sglang"});
  for (const std::string_view role : roles_) {
    const std::string scheduler = RolePath(role) + ".scheduler";
    if (role != "decode") {
      AddDefault(scheduler + ".max_batched_tokens", {8192, 16384, 32768});
    }
    if (role == "prefill") {
      AddDefault(scheduler + ".max_sequences", {1, 2, 4, 8, 16, 32, 64, 128, 256});
    } else {
      AddDefault(scheduler + ".max_sequences", {256, 512, 1024});
    }
  }
}

// The generated shapes of all roles are one dimension, because they share the GPUs.
Result<void> BranchBuilder::AddGenerated(const Roles& roles) {
  const Json* name = FindPath(base_, "engine.model");
  if (name == nullptr || !name->is_string()) {
    return UsageError(where_, "engine.model: is required as text");
  }
  DYNO_TRY(const ModelWidth model, ReadModelWidth(name->string(), where_));
  const std::uint64_t most = settings_.constraints.max_candidate_gpus;
  const std::uint64_t least =
      roles.size() == roles_.size() ? settings_.constraints.min_candidate_gpus.value_or(0) : 0;
  const std::vector<Shape> shapes = LegalShapes(model, most);
  const auto path = [](std::string_view role) { return RolePath(role) + ".parallelism"; };
  Dimension dimension;
  for (const Shape& first : shapes) {
    if (roles.size() == 1) {
      if (first.gpus() >= least) {
        dimension.options.push_back({{.path = path(roles[0]), .value = first.ToJson()}});
      }
      continue;
    }
    for (const Shape& second : shapes) {
      const std::uint64_t gpus = first.gpus() + second.gpus();
      if (gpus > most || gpus < least) {
        continue;
      }
      dimension.options.push_back({{.path = path(roles[0]), .value = first.ToJson()},
                                   {.path = path(roles[1]), .value = second.ToJson()}});
      if (dimension.options.size() > kMaxShapes) {
        return UsageError(where_,
                          "optimization.constraints.max_candidate_gpus: " + std::to_string(most) +
                              " GPUs give more than " + std::to_string(kMaxShapes) +
                              " pairs of shapes; give parallelism.preset as a list");
      }
    }
  }
  if (dimension.options.empty()) {
    return UsageError(where_, path(roles[0]) + ": no legal shape has the number of GPUs that " +
                                  "optimization.constraints allows");
  }
  dimensions_.push_back(std::move(dimension));
  return {};
}

Result<void> BranchBuilder::AddParallelism() {
  Roles generated;
  for (const std::string_view role : roles_) {
    const std::string path = RolePath(role) + ".parallelism";
    DYNO_TRY(const ParallelismDomain domain,
             ReadParallelism(FindPath(base_, path), path, settings_.constraints.max_candidate_gpus,
                             where_));
    if (domain.kind == ParallelismDomain::Kind::kGenerated) {
      generated.push_back(role);
    }
    if (domain.kind == ParallelismDomain::Kind::kListed) {
      std::vector<Json> shapes;
      for (const Shape& shape : domain.listed) {
        shapes.push_back(shape.ToJson());
      }
      dimensions_.push_back(Choices(path, shapes));
    }
    RemovePath(base_, path + ".preset");
  }
  return generated.empty() ? Result<void>() : AddGenerated(generated);
}

void BranchBuilder::DropImpossibleBackends() {
  for (Dimension& dimension : dimensions_) {
    const auto impossible = [](const Option& option) {
      return option.front().path == "engine.backend" && option.front().value == Json("trtllm");
    };
    if (!std::ranges::all_of(dimension.options, impossible)) {
      std::erase_if(dimension.options, impossible);
    }
  }
}

Result<Branch> BranchBuilder::Build(std::string_view mode, bool mode_is_searched) {
  roles_ = mode == kAggregated ? Roles{"aggregated"} : Roles{"prefill", "decode"};
  SetPath(base_, "engine.mode", Json(mode));
  if (mode_is_searched) {
    KeepRoles(mode);
  }
  DYNO_TRY_VOID(MakeRoles());
  DYNO_TRY_VOID(AddDomains(base_, ""));
  DYNO_TRY_VOID(AddParallelism());
  AddDefaults();
  if (mode == kDisaggregated) {
    DropImpossibleBackends();
  }
  return Branch(std::move(base_), std::move(dimensions_));
}

Result<std::vector<std::string>> Modes(const Json* value, const std::string& where) {
  std::vector<Json> values = {Json(kAggregated), Json(kDisaggregated)};
  if (value != nullptr && IsDomain(*value)) {
    DYNO_TRY(const Domain domain, ReadDomain(*value, "engine.mode", FieldKind::kWord, where));
    values = domain.values;
  } else if (value != nullptr) {
    values = {*value};
  }
  std::vector<std::string> modes;
  for (const Json& mode : values) {
    if (mode != Json(kAggregated) && mode != Json(kDisaggregated)) {
      return UsageError(where, "engine.mode: must be one of aggregated, disaggregated, got " +
                                   config::Shown(mode));
    }
    modes.push_back(mode.string());
  }
  return modes;
}

Result<void> NameHardware(Json& base, const SearchSettings& settings, const std::string& where) {
  const Json* hardware = FindPath(base, "engine.hardware");
  const bool is_auto = hardware != nullptr && *hardware == Json("auto");
  if (is_auto && !settings.hardware) {
    return UsageError(where, "engine.hardware: auto requires optimization.hardware");
  }
  if (!is_auto && settings.hardware) {
    return UsageError(where, "optimization.hardware: is for engine.hardware auto only");
  }
  if (is_auto) {
    SetPath(base, "engine.hardware", Json(*settings.hardware));
  }
  return {};
}

}  // namespace

Branch::Branch(Json base, std::vector<Dimension> dimensions)
    : base_(std::move(base)), dimensions_(std::move(dimensions)) {}

std::optional<std::uint64_t> Branch::size() const {
  std::uint64_t size = 1;
  for (const Dimension& dimension : dimensions_) {
    if (dimension.open) {
      return std::nullopt;
    }
    const std::uint64_t count = dimension.options.size();
    size = size > std::numeric_limits<std::uint64_t>::max() / count
               ? std::numeric_limits<std::uint64_t>::max()
               : size * count;
  }
  return size;
}

Point Branch::At(std::uint64_t number) const {
  Point point(dimensions_.size());
  for (std::size_t i = dimensions_.size(); i-- > 0;) {
    point[i].option = number % dimensions_[i].options.size();
    number /= dimensions_[i].options.size();
  }
  return point;
}

Point Branch::Draw(ChaCha12& random) const {
  Point point(dimensions_.size());
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    if (dimensions_[i].open) {
      point[i].value = dimensions_[i].open->Draw(random);
    } else {
      point[i].option = random.NextBelow(static_cast<std::uint32_t>(dimensions_[i].options.size()));
    }
  }
  return point;
}

std::vector<Assignment> Branch::Values(const Point& point) const {
  std::vector<Assignment> values;
  for (std::size_t i = 0; i < point.size(); ++i) {
    if (dimensions_[i].open) {
      values.push_back({.path = dimensions_[i].path, .value = point[i].value});
    } else {
      const Option& option = dimensions_[i].options[point[i].option];
      values.insert(values.end(), option.begin(), option.end());
    }
  }
  return values;
}

Json Branch::Document(const Point& point) const {
  Json document = base_;
  const std::vector<Assignment> values = Values(point);
  for (const Assignment& assignment : values) {
    SetPath(document, assignment.path, assignment.value);
  }
  // A policy that has no weights is the same whatever their domain says.
  const Json* policy = FindPath(document, "router.policy");
  if (policy == nullptr || *policy != Json("kv_router")) {
    for (const Assignment& assignment : values) {
      if (assignment.path.starts_with("router.") && assignment.path != "router.policy") {
        RemovePath(document, assignment.path);
      }
    }
  }
  return document;
}

Result<std::vector<Branch>> BuildSpace(const Json& document, const SearchSettings& settings,
                                       const std::string& where) {
  Json base = document;
  RemovePath(base, "optimization");
  RemovePath(base, "optimizer");
  const Json* engine = base.Find("engine");
  if (engine == nullptr || !engine->is_object()) {
    return UsageError(where, "engine: is required as a mapping");
  }
  if (const Json* workers = engine->Find("workers"); workers != nullptr && !workers->is_object()) {
    return UsageError(where, "engine.workers: must be a mapping, got " + config::Shown(*workers));
  }
  DYNO_TRY_VOID(NameHardware(base, settings, where));
  const Json* mode = FindPath(base, "engine.mode");
  DYNO_TRY(const std::vector<std::string> modes, Modes(mode, where));
  const bool searched = mode == nullptr || IsDomain(*mode);
  std::vector<Branch> branches;
  for (const std::string& name : modes) {
    DYNO_TRY(Branch branch, BranchBuilder(base, settings, where).Build(name, searched));
    branches.push_back(std::move(branch));
  }
  return branches;
}

}  // namespace dynosim::search
