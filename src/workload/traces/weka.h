// SPDX-License-Identifier: Apache-2.0
// Weka corpora: recorded conversations of agents, each with its subagents, as a graph of dependent
// requests. A play is one conversation.
#pragma once

#include "base/result.h"
#include "workload/spec.h"
#include "workload/traces/contents.h"

namespace dynosim::workload {

Result<TraceContents> ReadWeka(const WorkloadSpec& workload, const TraceSpec& spec);

}  // namespace dynosim::workload
