// SPDX-License-Identifier: Apache-2.0
// Which requests of a recorded conversation followed each other. A recording is a flat list; here
// it becomes streams, each a conversation that grows turn by turn: a request continues the stream
// whose last prompt it begins with, or forks off as a new one, and a stream that ended where
// another begins is spliced with it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "workload/request.h"

namespace dynosim::workload {

// Times are seconds.
struct WekaStreamRequest {
  std::string id;
  double t = 0.0;
  double end = 0.0;
  std::uint32_t model = 0;
  std::uint64_t output_tokens = 0;
  std::span<const std::uint64_t> hashes{};
};

struct WekaStream {
  std::vector<std::uint32_t> requests;  // in order of time
  std::uint32_t fork_source = kNone;    // the request that the first one's prompt comes from
};

// What may lie between two times that count as equal.
inline constexpr double kWekaTolerance = 1e-6;

// The main stream first, then the others in order of their first requests. No streams for no
// requests.
std::vector<WekaStream> SplitWekaStreams(std::span<const WekaStreamRequest> requests);

}  // namespace dynosim::workload
