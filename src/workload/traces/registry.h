// SPDX-License-Identifier: Apache-2.0
// The trace formats. A format is one file in this folder and one line in registry.cc.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "workload/load.h"
#include "workload/spec.h"

namespace dynosim::workload {

// Finds the format by name or alias and reads the trace.
Result<LoadedWorkload> ReadTrace(const WorkloadSpec& workload, const TraceSpec& spec,
                                 std::uint64_t engine_block_size);

}  // namespace dynosim::workload
