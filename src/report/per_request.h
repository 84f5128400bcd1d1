// SPDX-License-Identifier: Apache-2.0
// Per-request rows (chapter 50, section 4): one per request with a terminal outcome, in the order
// of Outcome::records. Rows are written one by one; no document is ever held in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "report/json_writer.h"
#include "sim/outcome.h"
#include "workload/agentic_source.h"

namespace dynosim::report {

// Name of a session by its index, as in RequestSource::SessionName.
using SessionNames = std::function<std::string(std::uint32_t)>;

// Number of rows: terminal requests.
std::uint64_t RowCount(const sim::Outcome& outcome);

// Text form of the request id: UUID of ordinal + 1.
std::string RequestUuid(std::uint32_t id);

// Writes one row as an object. `index` is an index of Outcome::records of a terminal request;
// `agentic` is the source of the run when it replayed a graph.
void WriteRow(JsonWriter& out, const sim::Outcome& outcome, std::size_t index,
              const SessionNames& session_names, const workload::AgenticSource* agentic = nullptr);

// One compact object a line. The file appears whole or not at all; parent directories are made.
Result<void> WriteRequestsJsonl(const std::string& path, const sim::Outcome& outcome,
                                const SessionNames& session_names,
                                const workload::AgenticSource* agentic = nullptr);

}  // namespace dynosim::report
