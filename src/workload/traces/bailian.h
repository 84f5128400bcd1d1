// SPDX-License-Identifier: Apache-2.0
// Qwen-Bailian traces: JSON Lines with timestamp (seconds), input_length, output_length and
// hash_ids of 16 tokens. A turn's prompt holds the whole conversation, and its recorded time
// already follows its parent's, so requests are replayed as recorded; chat ids, type and turn are
// not needed.
#pragma once

#include "base/result.h"
#include "workload/spec.h"
#include "workload/traces/contents.h"

namespace dynosim::workload {

Result<TraceContents> ReadBailian(const WorkloadSpec& workload, const TraceSpec& spec);

}  // namespace dynosim::workload
