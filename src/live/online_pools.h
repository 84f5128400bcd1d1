// SPDX-License-Identifier: Apache-2.0
// A workload played against a prefill and a decode pool in real time; see online_replay.h.
#pragma once

#include "base/result.h"
#include "live/clock.h"
#include "live/online_replay.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "sim/run.h"
#include "workload/source.h"

namespace dynosim::live {

Result<sim::Outcome> RunOnlinePools(const scenario::Scenario& scenario,
                                    workload::RequestSource& source, const sim::RunHooks& hooks,
                                    const Clock& clock, const WaitUntil& wait);

}  // namespace dynosim::live
