// SPDX-License-Identifier: Apache-2.0
#include "search/parallelism.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "config/decode.h"
#include "search/shapes.h"

namespace dynosim::search {
namespace {

using config::Decoder;
using Kind = ParallelismDomain::Kind;

constexpr config::IntegerRange kWidth{.min = 1, .max = 65'536};

// All six names, so that no entry depends on a default.
Result<Shape> ReadShape(const Json& entry, const std::string& path, const std::string& where) {
  if (!entry.is_object()) {
    return UsageError(where, path + ": must be a mapping, got " + config::Shown(entry));
  }
  Shape shape;
  Decoder v(entry, path);
  for (const auto& [name, field] : {std::pair{"replicas", &shape.replicas},
                                    {"tensor", &shape.tensor},
                                    {"pipeline", &shape.pipeline},
                                    {"attention_data", &shape.attention_data},
                                    {"moe_tensor", &shape.moe_tensor},
                                    {"moe_expert", &shape.moe_expert}}) {
    v.Require(name);
    v.Field(name, *field, kWidth);
  }
  DYNO_TRY_VOID(v.Finish(where));
  return shape;
}

Result<std::vector<Shape>> ReadList(const Json::Array& entries, const std::string& path,
                                    std::uint64_t max_gpus, const std::string& where) {
  std::vector<Shape> shapes;
  if (entries.empty()) {
    return UsageError(where, path + ": must have at least one entry");
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string at = path + "[" + std::to_string(i) + "]";
    DYNO_TRY(const Shape shape, ReadShape(entries[i], at, where));
    if (shape.gpus() > max_gpus) {
      return UsageError(where, at + ": has " + std::to_string(shape.gpus()) +
                                   " GPUs, more than optimization.constraints." +
                                   "max_candidate_gpus " + std::to_string(max_gpus));
    }
    shapes.push_back(shape);
  }
  return shapes;
}

bool IsOff(const Json& preset) {
  return preset == Json(false) || (preset.is_object() && preset.object().empty());
}

}  // namespace

Result<ParallelismDomain> ReadParallelism(const Json* value, const std::string& path,
                                          std::uint64_t max_gpus, const std::string& where) {
  ParallelismDomain domain;
  if (value == nullptr || !value->is_object() || value->object().empty()) {
    return domain;
  }
  const Json* preset = value->Find("preset");
  if (preset == nullptr || IsOff(*preset)) {
    domain.kind = Kind::kFields;
    return domain;
  }
  const Json::Object& members = value->object();
  const auto other = std::ranges::find_if(
      members, [](const Json::Member& member) { return member.first != "preset"; });
  if (other != members.end()) {
    return UsageError(where, path + "." + other->first +
                                 ": cannot be combined with preset; preset: false gives every "
                                 "field a domain of its own");
  }
  if (preset->is_array()) {
    domain.kind = Kind::kListed;
    DYNO_TRY(domain.listed, ReadList(preset->array(), path + ".preset", max_gpus, where));
  } else if (*preset != Json("default")) {
    return UsageError(where, path + ".preset: must be default, a list of shapes or false, got " +
                                 config::Shown(*preset));
  }
  return domain;
}

}  // namespace dynosim::search
