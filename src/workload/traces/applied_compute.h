// SPDX-License-Identifier: Apache-2.0
// Agentic sessions of Applied Compute: JSON Lines, one session per line as lists of turn lengths
// and tool latencies. A turn's prompt is everything before it; there are no times of arrival.
#pragma once

#include "base/result.h"
#include "workload/spec.h"
#include "workload/traces/contents.h"

namespace dynosim::workload {

Result<TraceContents> ReadAppliedCompute(const WorkloadSpec& workload, const TraceSpec& spec);

}  // namespace dynosim::workload
