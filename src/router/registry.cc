// SPDX-License-Identifier: Apache-2.0
#include "router/registry.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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
  if (role == PoolRole::kPrefill) {
    options.config = PrefillPoolConfig(settings.kv);
  }
  if (role == PoolRole::kDecode) {
    options.config = DecodePoolConfig(settings.kv);
    options.events = false;
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
  return std::make_unique<LeastLoaded>(shape,
                                       LoadOptions{.seed = settings.seed,
                                                   .two_choices = true,
                                                   .capture_candidates = settings.capture_candidates});
}

struct Policy {
  std::string_view name;
  Made (*make)(const RouterSettings& settings, const PoolShape& shape, PoolRole role);
};

constexpr std::array kPolicies = {
    Policy{"round_robin", MakeRoundRobin}, Policy{"kv_router", MakeKvRouter},
    Policy{"random", MakeRandom},          Policy{"least_loaded", MakeLeastLoaded},
    Policy{"power_of_two", MakePowerOfTwo},
};

}  // namespace

std::vector<std::string_view> RouterModes() {
  std::vector<std::string_view> names;
  for (const Policy& policy : kPolicies) {
    names.push_back(policy.name);
  }
  return names;
}

std::string RouterModesText() {
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
  const auto* policy = std::ranges::find(kPolicies, settings.mode, &Policy::name);
  DYNO_CHECK(policy != kPolicies.end());
  return policy->make(settings, shape, role);
}

}  // namespace dynosim::router
