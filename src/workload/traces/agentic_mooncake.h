// SPDX-License-Identifier: Apache-2.0
// Agentic Mooncake traces, version 2: JSON Lines, a header and then one request per line with its
// play, its earliest time and the requests it depends on.
#pragma once

#include "base/result.h"
#include "workload/spec.h"
#include "workload/traces/contents.h"

namespace dynosim::workload {

Result<TraceContents> ReadAgenticMooncake(const WorkloadSpec& workload, const TraceSpec& spec);

}  // namespace dynosim::workload
