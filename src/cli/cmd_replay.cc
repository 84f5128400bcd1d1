// SPDX-License-Identifier: Apache-2.0
// Order: flags, output paths, workload, run, files, table. Nothing is written before the run has
// ended, and every file appears whole or not at all.
#include "cli/cmd_replay.h"

#include <cstdio>
#include <ctime>
#include <string>

#include "base/result.h"
#include "cli/interrupt.h"
#include "cli/program.h"
#include "cli/report_paths.h"
#include "cli/run_scenario.h"
#include "report/chrome_trace.h"
#include "report/html_page.h"
#include "report/json_report.h"
#include "report/per_request.h"
#include "report/run_report.h"
#include "report/table.h"
#include "report/telemetry.h"
#include "scenario/replay_flags.h"

namespace dynosim::cli {
namespace {

std::tm LocalTime() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  return local;
}

// The error of an interrupted run; its text is not shown.
std::unexpected<Error> Stopped() { return FailedError("", "interrupted"); }

Result<report::FinishedRun> Simulate(const scenario::Scenario& scenario) {
  auto run = RunWithProgress(scenario, RunClock::now());
  if (Interrupted()) {
    return Stopped();
  }
  return run;
}

// Completes the name of the report when that is a default one.
Result<void> WriteFiles(scenario::Replay& replay, const report::FinishedRun& run) {
  const report::ReportParts parts = run.Parts(replay.scenario);
  if (replay.report_is_new) {
    DYNO_TRY(replay.report_json, report::WriteNewJsonReport(replay.report_json, parts));
  } else {
    DYNO_TRY_VOID(report::WriteJsonReport(replay.report_json, parts));
  }
  if (!replay.report_html.empty()) {
    DYNO_TRY_VOID(report::WriteHtmlPage(replay.report_html,
                                        {.title = "Simulated serving run", .run = &parts}));
  }
  if (!replay.report_jsonl.empty()) {
    DYNO_TRY_VOID(report::WriteRequestsJsonl(replay.report_jsonl, run.outcome, run.session_names,
                                             run.source->Agentic()));
  }
  if (!replay.trace_out.empty()) {
    DYNO_TRY_VOID(report::WriteChromeTraceFile(replay.trace_out, run.outcome, run.session_names));
  }
  if (!replay.scenario.telemetry.jsonl_path.empty()) {
    DYNO_TRY_VOID(report::WriteTelemetryJsonl(replay.scenario.telemetry.jsonl_path, run.outcome));
  }
  return {};
}

Result<void> Replay(const scenario::ReplayFlags& flags) {
  DYNO_TRY(scenario::Replay replay, scenario::BuildReplay(flags));
  DYNO_TRY_VOID(ResolveOutputs(replay, LocalTime()));
  if (flags.telemetry_sample_interval_ms && !replay.scenario.telemetry.enabled()) {
    std::fputs(
        "dynosim: warning: --telemetry-sample-interval-ms does nothing without "
        "--capture-telemetry, "
        "--telemetry-jsonl or --report-html\n",
        stderr);
  }
  DYNO_TRY(const report::FinishedRun run, Simulate(replay.scenario));
  // Files first: a reader that closes the pipe early must not cost the report. The table is shown
  // even when a file cannot be written.
  const Result<void> written = WriteFiles(replay, run);
  std::string text = report::RenderTable(run.summary) + "\n";
  if (written) {
    text += "Saved full report to: " + replay.report_json + "\n";
  }
  const Result<void> printed = Print(text);
  return written ? printed : written;
}

}  // namespace

int RunReplay(const scenario::ReplayFlags& flags) {
  WatchInterrupts();
  const Result<void> done = Replay(flags);
  if (done) {
    return kExitOk;
  }
  if (Interrupted()) {
    std::fputs("dynosim: interrupted; nothing was written\n", stderr);
    return kExitInterrupted;
  }
  return ReportError(done.error());
}

}  // namespace dynosim::cli
