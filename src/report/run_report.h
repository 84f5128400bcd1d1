// SPDX-License-Identifier: Apache-2.0
// One run from scenario to summary: loads the workload, simulates, summarizes. What every
// surface does with a scenario, so that each reports the same bytes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/scratch_file.h"
#include "report/json_report.h"
#include "report/per_request.h"
#include "report/summary.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "sim/run.h"
#include "workload/source.h"

namespace dynosim::report {

struct RunSetup {
  // What runs the scenario: virtual time, or a wall-clock driver.
  std::function<Result<sim::Outcome>(const scenario::Scenario&, workload::RequestSource&,
                                     const sim::RunHooks&)>
      simulate = sim::RunOffline;
  sim::RunHooks hooks;
  // Called with each warning about the workload before the run starts. May be empty.
  std::function<void(const std::string&)> warn;
  // Real time since the caller began, in ms; asked at the end of the run. May be empty: 0.
  std::function<double()> elapsed_ms;
};

struct FinishedRun {
  std::unique_ptr<workload::RequestSource> source;
  std::unique_ptr<ScratchFile> scratch;  // of the outcome; only when the source streams
  sim::Outcome outcome;
  Summary summary;
  SessionNames session_names;  // of `source`

  // The parts of a report of this run; both must outlive them.
  ReportParts Parts(const scenario::Scenario& scenario) const;
};

// `hooks.progress` is asked once before the run as well.
Result<FinishedRun> RunScenario(const scenario::Scenario& scenario, const RunSetup& setup = {});

}  // namespace dynosim::report
