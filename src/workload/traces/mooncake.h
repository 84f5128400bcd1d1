// SPDX-License-Identifier: Apache-2.0
// Mooncake traces: JSON Lines, one request per line with its lengths and the ids of its prompt
// blocks, optionally grouped into sessions. In the delta variant a later row of a session carries
// only its new input; the prompt is everything before it, generated tokens included.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "workload/load.h"
#include "workload/spec.h"

namespace dynosim::workload {

Result<LoadedWorkload> ReadMooncake(const WorkloadSpec& workload, const TraceSpec& spec,
                                    std::uint64_t engine_block_size);
Result<LoadedWorkload> ReadMooncakeDelta(const WorkloadSpec& workload, const TraceSpec& spec,
                                         std::uint64_t engine_block_size);

}  // namespace dynosim::workload
