// SPDX-License-Identifier: Apache-2.0
#include "cli/run_scenario.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "base/result.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "live/online_replay.h"
#include "report/run_report.h"
#include "scenario/scenario.h"

namespace dynosim::cli {

Result<report::FinishedRun> RunWithProgress(const scenario::Scenario& scenario,
                                            RunClock::time_point start) {
  Progress progress;
  report::RunSetup setup;
  if (scenario.online) {
    setup.simulate = [](const auto& played, auto& source, const auto& hooks) {
      return live::RunOnline(played, source, hooks);
    };
  }
  setup.hooks.progress = [&](double now_ms, std::uint64_t done, std::uint64_t total) {
    progress.Update(now_ms, done, total);
    return !Interrupted();
  };
  setup.warn = [](const std::string& warning) {
    std::fprintf(stderr, "dynosim: warning: %s\n", warning.c_str());
  };
  setup.elapsed_ms = [start] {
    return std::chrono::duration<double, std::milli>(RunClock::now() - start).count();
  };
  return report::RunScenario(scenario, setup);
}

}  // namespace dynosim::cli
