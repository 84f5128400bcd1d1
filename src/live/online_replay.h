// SPDX-License-Identifier: Apache-2.0
// Plays a workload against mock workers in real time (`--replay-mode online`): the same workers and
// records as offline, with the times at which things really happened.
#pragma once

#include <functional>

#include "base/result.h"
#include "live/clock.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "sim/run.h"
#include "workload/source.h"

namespace dynosim::live {

// Longest wait between two looks at the progress hook.
inline constexpr double kLookMs = 100.0;

// Called with the time until which nothing happens; returns at that time or later.
using WaitUntil = std::function<void(double at_ms)>;

// `clock` starts at the start of the run.
Result<sim::Outcome> RunOnline(const scenario::Scenario& scenario, workload::RequestSource& source,
                               const sim::RunHooks& hooks, const Clock& clock,
                               const WaitUntil& wait);

// On the monotonic clock.
Result<sim::Outcome> RunOnline(const scenario::Scenario& scenario, workload::RequestSource& source,
                               const sim::RunHooks& hooks);

}  // namespace dynosim::live
