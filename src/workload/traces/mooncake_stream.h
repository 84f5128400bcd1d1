// SPDX-License-Identifier: Apache-2.0
// A mooncake trace that is read while the run goes on. One pass over the file finds out whether
// that is possible: rows in order of time, each its own session, nothing wrong. A second one
// follows the virtual clock with one row of look-ahead, so memory does not depend on the number of
// rows.
#pragma once

#include <memory>

#include "base/result.h"
#include "workload/source.h"
#include "workload/spec.h"
#include "workload/trace_table.h"

namespace dynosim::workload {

// Null when the trace has to be read whole; that way also finds the words for what is wrong with
// it. `oddities` is filled for a source only.
std::unique_ptr<RequestSource> StreamMooncake(const WorkloadSpec& workload, const TraceSpec& spec,
                                              TraceOddities& oddities);

}  // namespace dynosim::workload
