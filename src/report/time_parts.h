// SPDX-License-Identifier: Apache-2.0
// Where the time of a request went: its time to the first token and its end-to-end time, each cut
// into the same five parts. Times are virtual milliseconds.
//
// The parts add up exactly, in any order of addition: every part is a multiple of the last binary
// digit of the total, so no partial sum is ever rounded. The stamps move to that grid by half a
// digit at most, which is why the two totals have parts of their own.
#pragma once

#include <optional>

#include "sim/outcome.h"

namespace dynosim::report {

struct TimeParts {
  // Arrival to the start of the first pass of the request (router queue, scheduler queue, and,
  // where the destination is reserved first, that wait too).
  double queue_ms = 0.0;
  // Aggregated: from there to the first token, recomputation after a preemption included.
  // Disaggregated: from there to the end of the prefill pass that finished the prompt.
  double prefill_ms = 0.0;
  // The KV of the prompt moves. 0 in aggregated runs.
  double transfer_ms = 0.0;
  // The prompt is computed and the decode worker is not ready: no room for the KV, a pass in
  // flight, or no slot. 0 in aggregated runs.
  double first_decode_wait_ms = 0.0;
  // The rest. For the first token: 0 in aggregated runs, the first decode pass otherwise.
  double decode_ms = 0.0;
};

// Parts of TtftMs and EndToEndMs (latency.h). Empty without tokens, and for a disaggregated request
// whose stamps were not captured.
std::optional<TimeParts> TtftParts(const sim::RequestRecord& record,
                                   const sim::RequestDetail& detail);
std::optional<TimeParts> EndToEndParts(const sim::RequestRecord& record,
                                       const sim::RequestDetail& detail);

}  // namespace dynosim::report
