// SPDX-License-Identifier: Apache-2.0
// TraceFacts: numbers that describe a workload before it is simulated: lengths, arrivals, and how
// much of all prompts a cache without limits would already hold.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workload/source.h"

namespace dynosim::workload {

struct LengthFacts {
  std::uint64_t total = 0;
  std::uint64_t min = 0;
  std::uint64_t median = 0;
  std::uint64_t p99 = 0;
  std::uint64_t max = 0;
  double mean = 0.0;
};

inline constexpr std::size_t kRateWindows = 10;

struct TraceFacts {
  std::uint64_t requests = 0;
  std::uint64_t groups = 0;  // sessions or plays
  LengthFacts input{}, output{};
  double last_arrival_ms = 0.0;
  // Requests that arrive in each tenth of the time up to the last arrival.
  std::array<std::uint64_t, kRateWindows> arrivals{};
  // Prompt tokens that earlier requests had, in whole blocks, if nothing were ever evicted.
  std::uint64_t reusable_tokens = 0;
  std::uint64_t distinct_blocks = 0;
  std::uint64_t block_size = 0;
};

// Goes through the whole workload, as if every request took no time. `source` was built for
// `block_size` and is used up.
TraceFacts FindTraceFacts(RequestSource& source, std::uint64_t block_size);

}  // namespace dynosim::workload
