// SPDX-License-Identifier: Apache-2.0
#include "report/run_report.h"

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/scratch_file.h"
#include "report/agentic.h"
#include "report/json_report.h"
#include "report/summary.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "sim/run.h"
#include "workload/agentic_source.h"
#include "workload/load.h"
#include "workload/source.h"
#include "workload/spec.h"

namespace dynosim::report {
namespace {

// A smaller trace is read in less than half a second and needs no care.
constexpr std::uint64_t kStreamFromBytes = std::uint64_t{64} << 20;

}  // namespace

ReportParts FinishedRun::Parts(const scenario::Scenario& scenario) const {
  return {.summary = summary,
          .outcome = outcome,
          .scenario = scenario,
          .session_names = session_names,
          .agentic = source->Agentic()};
}

Result<FinishedRun> RunScenario(const scenario::Scenario& scenario, const RunSetup& setup) {
  workload::WorkloadSpec workload = scenario.workload;
  if (workload.trace && !workload.trace->stream_from_bytes && !scenario.online &&
      !scenario.placements) {
    workload.trace->stream_from_bytes = kStreamFromBytes;
  }
  DYNO_TRY(workload::LoadedWorkload loaded,
           workload::LoadWorkload(workload, scenario.block_size()));
  if (setup.warn) {
    for (const std::string& warning : loaded.warnings) {
      setup.warn(warning);
    }
  }
  FinishedRun run;
  run.source = std::move(loaded.source);
  if (setup.hooks.progress && !setup.hooks.progress(0.0, 0, run.source->RequestCount())) {
    return FailedError("", "the run was stopped");
  }
  if (workload.trace && run.source->InOrder()) {  // it streams
    run.scratch = std::make_unique<ScratchFile>();
  }
  Summarizer summarizer(scenario.goodput, run.scratch.get());
  sim::RunHooks hooks = setup.hooks;
  hooks.scratch = run.scratch.get();
  hooks.ended = [&](const sim::RequestRecord& record) { summarizer.Add(record); };
  DYNO_TRY(run.outcome, setup.simulate(scenario, *run.source, hooks));
  for (const sim::RequestRecord& record : run.outcome.records) {
    summarizer.Add(record);  // those that were kept
  }
  const double wall_time_ms = setup.elapsed_ms ? setup.elapsed_ms() : 0.0;
  run.summary = summarizer.Finish(run.outcome, scenario, {.wall_time_ms = wall_time_ms});
  if (run.scratch && run.scratch->problem() != nullptr) {
    return std::unexpected(*run.scratch->problem());
  }
  if (const workload::AgenticSource* const agentic = run.source->Agentic()) {
    run.summary.agentic = SummarizeAgentic(*agentic, scenario);
  }
  run.session_names = [source = run.source.get()](std::uint32_t session) {
    return source->SessionName(session);
  };
  return run;
}

}  // namespace dynosim::report
