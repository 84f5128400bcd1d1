// SPDX-License-Identifier: Apache-2.0
// The routing policies by name. A new policy is one class and one line in registry.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "router/config.h"
#include "router/router.h"

namespace dynosim::router {

enum class PoolRole : std::uint8_t { kAggregated, kPrefill, kDecode };

struct Policy {
  std::string_view name;
  bool draws = true;     // uses the seed
  bool compares = true;  // its decisions have candidates
  std::unique_ptr<Router> (*make)(const RouterSettings& settings, const PoolShape& shape,
                                  PoolRole role) = nullptr;
};

// All policies, in the order in which they are listed to users.
std::span<const Policy> Policies();
// nullptr if no policy has the name.
const Policy* FindPolicy(std::string_view name);
// All names for messages: "a, b or c".
std::string PolicyNames();

// The router of one pool. `settings.mode` is the name of a policy.
std::unique_ptr<Router> MakeRouter(const RouterSettings& settings, const PoolShape& shape,
                                   PoolRole role);

}  // namespace dynosim::router
