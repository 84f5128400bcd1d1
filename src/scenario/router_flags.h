// SPDX-License-Identifier: Apache-2.0
// The flags of `replay` that concern routing: policy, its configuration, and forced placements.
#pragma once

#include "base/result.h"
#include "scenario/replay_flags.h"
#include "scenario/scenario.h"

namespace dynosim::scenario {

// Fills scenario.router and scenario.placements; reads the files that the flags name.
Result<void> ReadRouterFlags(const ReplayFlags& flags, Scenario& scenario);

}  // namespace dynosim::scenario
