// SPDX-License-Identifier: Apache-2.0
// Dynamo request traces: one or more files of JSON Lines with finished requests and tool calls.
// Without agent contexts the requests are a list; with them they are a graph: turns of one session
// follow each other, and child sessions start from and join their parents.
#pragma once

#include "base/result.h"
#include "workload/spec.h"
#include "workload/traces/contents.h"

namespace dynosim::workload {

Result<TraceContents> ReadDynamo(const WorkloadSpec& workload, const TraceSpec& spec);

}  // namespace dynosim::workload
