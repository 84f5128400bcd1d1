// SPDX-License-Identifier: Apache-2.0
// Where the time of a request went: the phases that it passed through, and its time to the first
// token and end-to-end time, each cut into the same five parts. Times are virtual milliseconds.
//
// The parts add up exactly, in any order of addition: every part is a multiple of the last binary
// digit of the total, so no partial sum is ever rounded. The stamps move to that grid by half a
// digit at most, which is why the two totals have parts of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/outcome.h"

namespace dynosim::report {

enum class Phase : std::uint8_t {
  // Arrival to the start of the first pass of the request: in the router's queue or the
  // scheduler's, and, where the destination is reserved first, waiting for that too.
  kQueue,
  // Aggregated: from there to the first token, recomputation after a preemption included.
  // Disaggregated: from there to the end of the prefill pass that finished the prompt.
  kPrefill,
  // The KV of the prompt moves. Disaggregated runs only.
  kTransfer,
  // The prompt is computed and the decode worker is not ready: no room for the KV, a pass in
  // flight, or no slot. Before and after the transfer; disaggregated runs only.
  kFirstDecodeWait,
  // Aggregated: the first token to the last. Disaggregated: the start of the first decode pass to
  // the last token, so that the first decode pass is part of TTFT.
  kDecode,
};
inline constexpr std::size_t kPhases = 5;

// "queue", "prefill", "transfer", "first_decode_wait", "decode".
std::string_view PhaseName(Phase phase);

struct PhaseSpan {
  Phase phase = Phase::kQueue;
  double from_ms = 0.0;
  double to_ms = 0.0;
};

// The phases of a terminal request, one after the other without a gap, from its arrival to its last
// token (without tokens: to its end). `detail` is needed for disaggregated requests; without its
// stamps the last phase that is known goes on to the end.
std::vector<PhaseSpan> PhasesOf(const sim::RequestRecord& record, const sim::RequestDetail& detail);

struct TimeParts {
  double queue_ms = 0.0;
  double prefill_ms = 0.0;
  double transfer_ms = 0.0;
  double first_decode_wait_ms = 0.0;
  double decode_ms = 0.0;
};

// Parts of TtftMs and EndToEndMs (latency.h). Empty without tokens, and for a disaggregated request
// whose stamps were not captured.
std::optional<TimeParts> TtftParts(const sim::RequestRecord& record,
                                   const sim::RequestDetail& detail);
std::optional<TimeParts> EndToEndParts(const sim::RequestRecord& record,
                                       const sim::RequestDetail& detail);

}  // namespace dynosim::report
