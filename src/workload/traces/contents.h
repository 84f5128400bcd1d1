// SPDX-License-Identifier: Apache-2.0
// TraceContents: what a trace file says, before a load is put on it. A format reads its files into
// one of two shapes: a table of sessions, or a graph of dependent requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "workload/agentic_graph.h"
#include "workload/spec.h"
#include "workload/trace_table.h"

namespace dynosim::workload {

struct TraceContents {
  std::string path;  // for messages: the first file
  std::optional<TraceTable> table{};
  std::optional<AgenticGraph> graph{};
  TraceOddities oddities{};
};

// Tokens of one hash id: as the user says, else 512.
Result<std::uint64_t> TraceBlockSize(const TraceSpec& spec);

}  // namespace dynosim::workload
