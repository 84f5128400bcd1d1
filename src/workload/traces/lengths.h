// SPDX-License-Identifier: Apache-2.0
// Plain lists of lengths: input_toks, output_toks and arrival_time_ns of every request, as JSON
// Lines or as CSV. Prompts have no identity, so they share nothing. Without arrival times a list
// can be replayed with a concurrency only.
#pragma once

#include "base/result.h"
#include "workload/spec.h"
#include "workload/traces/contents.h"

namespace dynosim::workload {

Result<TraceContents> ReadLengths(const WorkloadSpec& workload, const TraceSpec& spec);

}  // namespace dynosim::workload
