// SPDX-License-Identifier: Apache-2.0
// The run as a trace in the Trace Event Format, which Perfetto (ui.perfetto.dev) and
// chrome://tracing open: a slice per request with its phases inside, a slice per worker pass, and
// counters of every rank where telemetry was sampled. Times in the file are virtual microseconds.
//
// Requests overlap and slices of one track may not, so requests are laid out in lanes: each takes
// the lowest lane that is free at its arrival. The number of lanes is the number of requests in
// flight at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/json_writer.h"
#include "report/per_request.h"
#include "sim/outcome.h"

namespace dynosim::report {

// Lane of each record of `outcome`, from 0; terminal requests only, the others have lane 0.
std::vector<std::uint32_t> RequestLanes(const sim::Outcome& outcome);

// Writes the trace as one object and a line feed. The outcome has details and passes
// (Scenario::timeline).
void WriteChromeTrace(JsonWriter& out, const sim::Outcome& outcome,
                      const SessionNames& session_names);

// The file appears whole or not at all; parent directories are made.
Result<void> WriteChromeTraceFile(const std::string& path, const sim::Outcome& outcome,
                                  const SessionNames& session_names);

}  // namespace dynosim::report
