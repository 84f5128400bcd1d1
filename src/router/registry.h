// SPDX-License-Identifier: Apache-2.0
// The routing policies by name. A new policy is one class and one line in registry.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "router/config.h"
#include "router/router.h"

namespace dynosim::router {

enum class PoolRole : std::uint8_t { kAggregated, kPrefill, kDecode };

// Names of all policies, in the order in which they are listed to users.
std::vector<std::string_view> RouterModes();
// "a, b or c".
std::string RouterModesText();

// The router of one pool. `settings.mode` is one of RouterModes().
std::unique_ptr<Router> MakeRouter(const RouterSettings& settings, const PoolShape& shape,
                                   PoolRole role);

}  // namespace dynosim::router
