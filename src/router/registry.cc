// SPDX-License-Identifier: Apache-2.0
#include "router/registry.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"
#include "router/config.h"
#include "router/kv_router.h"
#include "router/load_policies.h"
#include "router/router.h"

namespace dynosim::router {
namespace {

using Made = std::unique_ptr<Router>;

Made MakeRoundRobin(const RouterSettings&, const PoolShape& shape, PoolRole role) {
  return std::make_unique<RoundRobin>(
      shape, role == PoolRole::kAggregated ? Rotation::kWorkers : Rotation::kTargets);
}

Made MakeKvRouter(const RouterSettings& settings, const PoolShape& shape, PoolRole role) {
  KvRouterOptions options{.config = settings.kv,
                          .profile = settings.profile,
                          .seed = settings.seed,
                          .capture_candidates = settings.capture_candidates};
  if (settings.live && !settings.kv.use_kv_events) {
    options.caches =
        settings.kv.lru_cache && shape.pool_blocks > 0 ? CacheSource::kLru : CacheSource::kTtl;
    options.ttl.ttl_ms = settings.kv.ttl_secs * 1000.0;
    options.lru_blocks = shape.pool_blocks;
  }
  if (settings.live && settings.kv.predicted_ttl_secs) {
    options.predicted_ttl_ms = *settings.kv.predicted_ttl_secs * 1000.0;
  }
  if (role == PoolRole::kPrefill) {
    options.config = PrefillPoolConfig(settings.kv);
  }
  if (role == PoolRole::kDecode) {
    options.config = DecodePoolConfig(settings.kv);
    options.caches = CacheSource::kNone;
  }
  if (options.config.predict_prefill) {
    options.prefill_ns = settings.prefill_ns;
  }
  return std::make_unique<KvRouter>(shape, options);
}

Made MakeRandom(const RouterSettings& settings, const PoolShape& shape, PoolRole) {
  return std::make_unique<RandomChoice>(shape, settings.seed);
}

Made MakeLeastLoaded(const RouterSettings& settings, const PoolShape& shape, PoolRole) {
  return std::make_unique<LeastLoaded>(
      shape, LoadOptions{.seed = settings.seed, .capture_candidates = settings.capture_candidates});
}

Made MakePowerOfTwo(const RouterSettings& settings, const PoolShape& shape, PoolRole) {
  return std::make_unique<LeastLoaded>(
      shape, LoadOptions{.seed = settings.seed,
                         .two_choices = true,
                         .capture_candidates = settings.capture_candidates});
}

constexpr std::array kPolicies = {
    Policy{.name = "round_robin", .draws = false, .compares = false, .make = MakeRoundRobin},
    Policy{.name = "kv_router", .make = MakeKvRouter},
    Policy{.name = "random", .compares = false, .make = MakeRandom},
    Policy{.name = "least_loaded", .make = MakeLeastLoaded},
    Policy{.name = "power_of_two", .make = MakePowerOfTwo},
};

}  // namespace

std::span<const Policy> Policies() { return kPolicies; }

const Policy* FindPolicy(std::string_view name) {
  const auto* found = std::ranges::find(kPolicies, name, &Policy::name);
  return found == kPolicies.end() ? nullptr : found;
}

std::string PolicyNames() {
  std::string text;
  for (std::size_t i = 0; i < kPolicies.size(); ++i) {
    if (i > 0) {
      text += i + 1 < kPolicies.size() ? ", " : " or ";
    }
    text += kPolicies[i].name;
  }
  return text;
}

std::unique_ptr<Router> MakeRouter(const RouterSettings& settings, const PoolShape& shape,
                                   PoolRole role) {
  const Policy* policy = FindPolicy(settings.mode);
  DYNO_CHECK(policy != nullptr);
  return policy->make(settings, shape, role);
}

}  // namespace dynosim::router
