// SPDX-License-Identifier: Apache-2.0
// BurstGPT traces: CSV with Timestamp (seconds), Request tokens and Response tokens. Prompts have
// no identity, so they share nothing. A response of 0 tokens is a failed call; its prompt is
// computed.
#pragma once

#include "base/result.h"
#include "workload/spec.h"
#include "workload/traces/contents.h"

namespace dynosim::workload {

Result<TraceContents> ReadBurstGpt(const WorkloadSpec& workload, const TraceSpec& spec);

}  // namespace dynosim::workload
