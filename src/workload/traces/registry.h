// SPDX-License-Identifier: Apache-2.0
// The trace formats. A format is one file in this folder and one line in registry.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "workload/load.h"
#include "workload/spec.h"
#include "workload/traces/contents.h"

namespace dynosim::workload {

// What the trace files say. Finds the format by name or alias.
Result<TraceContents> ReadTraceContents(const WorkloadSpec& workload, const TraceSpec& spec);

// The trace as a source of requests under the workload's load.
Result<LoadedWorkload> ReadTrace(const WorkloadSpec& workload, const TraceSpec& spec);

// Names of all formats, in the order of the table.
std::vector<std::string_view> TraceFormatNames();

}  // namespace dynosim::workload
