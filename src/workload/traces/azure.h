// SPDX-License-Identifier: Apache-2.0
// Azure LLM inference traces: CSV with TIMESTAMP (wall clock), ContextTokens and GeneratedTokens.
// Prompts have no identity, so they share nothing.
#pragma once

#include "base/result.h"
#include "workload/spec.h"
#include "workload/traces/contents.h"

namespace dynosim::workload {

Result<TraceContents> ReadAzure(const WorkloadSpec& workload, const TraceSpec& spec);

}  // namespace dynosim::workload
