// SPDX-License-Identifier: Apache-2.0
// The policy file: YAML turned into JSON values, then decoded with the rules of chapter 70, 6.2.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "config/decode.h"
#include "config/yaml_to_json.h"
#include "router/policy_profile.h"

namespace dynosim::router {
namespace {

using config::Choice;
using config::Decoder;

constexpr std::string_view kInvalid = "invalid router policy config";
constexpr std::uint64_t kMaxQuantum = 1ULL << 53U;

Result<Json> ReadYaml(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) {
    return UsageError(
        "", "failed to read router policy config " + path + ": it cannot be opened or read");
  }
  Result<Json> json = config::ParseYaml(text, path);
  if (!json) {
    return UsageError("", "failed to parse router policy config " + json.error().Text());
  }
  return json;
}

bool IsName(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
}

struct ClassDraft {
  ClassRules rules;
  std::optional<std::string> family, bucket;
};

// Reads one profile: the general one or that of a model.
class ProfileReader {
 public:
  explicit ProfileReader(Decoder& v) : v_(v) {}

  // Empty if none of the three fields is there.
  std::optional<PolicyProfile> Read() {
    const Json* family = v_.Raw("default_policy_family");
    const Json* buckets = v_.Raw("uncached_isl_buckets");
    const Json* classes = v_.Raw("policy_classes");
    if (family == nullptr && buckets == nullptr && classes == nullptr) {
      return std::nullopt;
    }
    if (family == nullptr || buckets == nullptr || classes == nullptr) {
      v_.Fail("",
              "default_policy_family, uncached_isl_buckets and policy_classes are given "
              "together or not at all");
      return std::nullopt;
    }
    ReadBuckets(*buckets);
    ReadClasses(*classes);
    if (!v_.failed()) {
      Bind(*family);
    }
    return std::move(profile_);
  }

 private:
  // Decodes the objects of a list.
  template <class F>
  void EachObject(std::string_view name, const Json& list, const F& fields) {
    if (!list.is_array() || list.array().empty()) {
      v_.Fail(name, "must be a non-empty list");
      return;
    }
    for (std::size_t i = 0; i < list.array().size(); ++i) {
      const Json& item = list.array()[i];
      const std::string place = std::string(name) + "[" + std::to_string(i) + "]";
      if (!item.is_object()) {
        v_.Fail(place, "must be an object");
        return;
      }
      Decoder inner(item, v_.PathOf(place));
      fields(inner);
      if (const Result<void> done = inner.Finish(""); !done) {
        v_.Fail("", done.error().message);
        return;
      }
    }
  }

  void ReadBuckets(const Json& list) {
    EachObject("uncached_isl_buckets", list, [&](Decoder& b) {
      PolicyProfile::Bucket bucket;
      b.Field("min_tokens", bucket.min_tokens);
      b.Field("bucket", bucket.name);
      b.Require("min_tokens");
      b.Require("bucket");
      const auto& known = profile_.buckets;
      if (known.empty() && bucket.min_tokens != 0) {
        b.Fail("min_tokens", "of the first bucket must be 0");
      }
      if (!known.empty() && bucket.min_tokens <= known.back().min_tokens) {
        b.Fail("min_tokens", "must be strictly increasing from bucket to bucket");
      }
      if (BucketOf(bucket.name)) {
        b.Fail("bucket", "'" + bucket.name + "' is there twice");
      }
      profile_.buckets.push_back(std::move(bucket));
    });
  }

  void ReadClasses(const Json& list) {
    constexpr std::array kPolicies = {Choice<QueuePolicy>{"fcfs", QueuePolicy::kFcfs},
                                      Choice<QueuePolicy>{"wspt", QueuePolicy::kWspt}};
    EachObject("policy_classes", list, [&](Decoder& c) {
      ClassDraft draft;
      ClassRules& rules = draft.rules;
      rules.name.clear();
      c.Field("name", rules.name);
      c.Field("policy_family", draft.family);
      c.Field("cache_bucket", draft.bucket);
      c.Field("queue_policy", rules.policy, kPolicies);
      c.Field("quantum", rules.quantum, {.min = 1, .max = kMaxQuantum});
      c.Field("prefill_busy_threshold", rules.busy_tokens);
      c.Field("prefill_busy_threshold_frac", rules.busy_fraction, config::kNonNegative);
      c.Field("request_queue_limit_per_worker", rules.request_limit);
      c.Field("raw_isl_token_queue_limit_per_worker", rules.prompt_token_limit);
      c.Field("cached_token_queue_limit_per_worker", rules.cached_token_limit);
      c.Require("name");
      c.Require("quantum");
      if (!IsName(rules.name)) {
        c.Fail("name", "must consist of letters, digits, '_', '.' and '-'");
      }
      if (std::ranges::any_of(drafts_,
                              [&](const ClassDraft& d) { return d.rules.name == rules.name; })) {
        c.Fail("name", "'" + rules.name + "' is there twice");
      }
      if (draft.family.has_value() != draft.bucket.has_value()) {
        c.Fail(draft.family ? "cache_bucket" : "policy_family",
               "is missing: policy_family and cache_bucket are given together or not at all");
      }
      drafts_.push_back(std::move(draft));
    });
  }

  std::optional<std::size_t> BucketOf(std::string_view name) const {
    const auto found = std::ranges::find(profile_.buckets, name, &PolicyProfile::Bucket::name);
    if (found == profile_.buckets.end()) {
      return std::nullopt;
    }
    return static_cast<std::size_t>(found - profile_.buckets.begin());
  }

  // Fills the matrix: every (family, bucket) pair has exactly one class.
  void Bind(const Json& default_family) {
    constexpr auto kUnbound = static_cast<std::size_t>(-1);
    PolicyProfile& p = profile_;
    for (ClassDraft& draft : drafts_) {
      const std::size_t number = p.classes.size();
      p.classes.push_back(draft.rules);
      p.is_explicit.push_back(!draft.family);
      if (!draft.family) {
        continue;
      }
      const auto bucket = BucketOf(*draft.bucket);
      if (!bucket) {
        v_.Fail("policy_classes", "class '" + draft.rules.name +
                                      "' names the unknown cache_bucket '" + *draft.bucket + "'");
        return;
      }
      auto family = std::ranges::find(p.families, *draft.family);
      if (family == p.families.end()) {
        p.families.push_back(*draft.family);
        p.matrix.resize(p.matrix.size() + p.buckets.size(), kUnbound);
        family = p.families.end() - 1;
      }
      std::size_t& bound =
          p.matrix[static_cast<std::size_t>(family - p.families.begin()) * p.buckets.size() +
                   *bucket];
      if (bound != kUnbound) {
        v_.Fail("policy_classes", "policy_family '" + *draft.family +
                                      "' has two classes for cache_bucket '" + *draft.bucket + "'");
        return;
      }
      bound = number;
    }
    CheckBound(kUnbound, default_family);
  }

  void CheckBound(std::size_t unbound, const Json& default_family) {
    PolicyProfile& p = profile_;
    for (std::size_t i = 0; i < p.matrix.size(); ++i) {
      if (p.matrix[i] == unbound) {
        v_.Fail("policy_classes", "policy_family '" + p.families[i / p.buckets.size()] +
                                      "' has no class for cache_bucket '" +
                                      p.buckets[i % p.buckets.size()].name + "'");
        return;
      }
    }
    for (std::size_t i = 0; i < p.classes.size(); ++i) {
      if (p.is_explicit[i] &&
          std::ranges::find(p.families, p.classes[i].name) != p.families.end()) {
        v_.Fail("policy_classes",
                "class '" + p.classes[i].name + "' has the name of a policy_family");
        return;
      }
    }
    const auto family = default_family.is_string()
                            ? std::ranges::find(p.families, default_family.string())
                            : p.families.end();
    if (family == p.families.end()) {
      v_.Fail("default_policy_family",
              "must be the policy_family of a class, got " + config::Shown(default_family));
      return;
    }
    p.default_family = static_cast<std::size_t>(family - p.families.begin());
  }

  Decoder& v_;
  PolicyProfile profile_;
  std::vector<ClassDraft> drafts_;
};

// Selecting a target by other rules than the cost function is a matter of live routers.
void CheckSelection(Decoder& v) {
  const Json* selection = v.Raw("worker_selection");
  if (selection == nullptr || selection->is_null()) {
    return;
  }
  if (!selection->is_object()) {
    v.Fail("worker_selection", "must be an object");
    return;
  }
  Decoder inner(*selection, "worker_selection");
  for (const std::string_view pool : {"aggregated", "prefill", "decode", "encode"}) {
    std::optional<std::string> name;
    inner.Field(pool, name);
    if (name && *name != "default") {
      v.Fail("worker_selection",
             "custom worker-selection policy \"" + *name + "\" is not supported by replay");
    }
  }
  inner.Raw("instances");
  if (const Result<void> done = inner.Finish(""); !done) {
    v.Fail("", done.error().message);
  }
}

struct PolicyFile {
  std::optional<PolicyProfile> general, of_model;
};

void ReadModels(Decoder& v, std::string_view model, PolicyFile& file) {
  const Json* models = v.Raw("models");
  if (models == nullptr || models->is_null()) {
    return;
  }
  if (!models->is_object()) {
    v.Fail("models", "must be an object");
    return;
  }
  for (const auto& [name, value] : models->object()) {
    const std::string place = "models." + name;
    if (!value.is_object()) {
      v.Fail(place, "must be an object");
      return;
    }
    Decoder inner(value, place);
    std::optional<PolicyProfile> profile = ProfileReader(inner).Read();
    if (!profile) {
      inner.Fail("", "must have default_policy_family, uncached_isl_buckets and policy_classes");
    }
    if (const Result<void> done = inner.Finish(""); !done) {
      v.Fail("", done.error().message);
      return;
    }
    if (name == model) {
      file.of_model = std::move(profile);
    }
  }
}

}  // namespace

Result<std::optional<PolicyProfile>> LoadPolicyFile(const std::string& path,
                                                    std::string_view model) {
  DYNO_TRY(const Json json, ReadYaml(path));
  const std::string where = path + ": " + std::string(kInvalid);
  if (!json.is_object()) {
    return UsageError(where, "must be a map of fields");
  }
  Decoder v(json, "");
  PolicyFile file;
  file.general = ProfileReader(v).Read();
  ReadModels(v, model, file);
  CheckSelection(v);
  const Json* settings = v.Raw("router");
  if (settings != nullptr && !settings->is_null() &&
      (!settings->is_object() || !settings->object().empty())) {
    v.Fail("router", "must be empty here: give the router's fields with --router-config");
  }
  if (const Json* classifier = v.Raw("request_classifier");
      classifier != nullptr && !classifier->is_null()) {
    v.Fail("request_classifier", "offline replay does not support request_classifier plugins");
  }
  DYNO_TRY_VOID(v.Finish(where));
  if (!file.general && !v.Has("models") && !v.Has("worker_selection") && !v.Has("router")) {
    return UsageError(where,
                      "it must define router settings, a root profile, at least one model profile, "
                      "worker_selection, or request_classifier");
  }
  return file.of_model ? std::move(file.of_model) : std::move(file.general);
}

}  // namespace dynosim::router
