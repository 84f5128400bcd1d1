// SPDX-License-Identifier: Apache-2.0
// Bounds of a simulated deployment.
#pragma once

#include <cstdint>

namespace dynosim::scenario {

inline constexpr std::uint32_t kMaxWorkers = 65'536;
// Ranks are objects in memory from the start.
inline constexpr std::uint64_t kMaxRanks = 1'000'000;

}  // namespace dynosim::scenario
