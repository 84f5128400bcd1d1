// SPDX-License-Identifier: Apache-2.0
// A run as `replay` and `predict` show it: progress, warnings, and an end when the user interrupts.
#pragma once

#include <chrono>

#include "base/result.h"
#include "report/run_report.h"
#include "scenario/scenario.h"

namespace dynosim::cli {

using RunClock = std::chrono::steady_clock;

// `start` is when the command began; the report has the time since then.
Result<report::FinishedRun> RunWithProgress(const scenario::Scenario& scenario,
                                            RunClock::time_point start);

}  // namespace dynosim::cli
