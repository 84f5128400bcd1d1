// SPDX-License-Identifier: Apache-2.0
// Synthetic workloads: requests made from a few numbers. Without session or prefix options they are
// a plain list of unrelated requests; with them, sessions of several turns whose prompts may begin
// with blocks shared by a group.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.h"
#include "workload/source.h"
#include "workload/spec.h"

namespace dynosim::workload {

// Checks the synthetic part of a workload (errors name the option) and builds its source. Nothing
// is stored per request of a list; sessions store a few bytes each.
Result<std::unique_ptr<RequestSource>> MakeSyntheticSource(const WorkloadSpec& workload,
                                                           const SyntheticSpec& spec,
                                                           std::uint64_t engine_block_size);

}  // namespace dynosim::workload
