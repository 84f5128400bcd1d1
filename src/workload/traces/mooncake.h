// SPDX-License-Identifier: Apache-2.0
// Mooncake traces: JSON Lines, one request per line with its lengths and the ids of its prompt
// blocks, optionally grouped into sessions. In the delta variant a later row of a session carries
// only its new input; the prompt is everything before it, generated tokens included.
#pragma once

#include "base/result.h"
#include "workload/spec.h"
#include "workload/traces/contents.h"

namespace dynosim::workload {

Result<TraceContents> ReadMooncake(const WorkloadSpec& workload, const TraceSpec& spec);
Result<TraceContents> ReadMooncakeDelta(const WorkloadSpec& workload, const TraceSpec& spec);

}  // namespace dynosim::workload
