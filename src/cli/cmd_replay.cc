// SPDX-License-Identifier: Apache-2.0
// Order: flags, output paths, workload, run, files, table. Nothing is written before the run has
// ended, and every file appears whole or not at all.
#include "cli/cmd_replay.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <utility>

#include "base/result.h"
#include "cli/interrupt.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/report_paths.h"
#include "live/online_replay.h"
#include "report/agentic.h"
#include "report/json_report.h"
#include "report/per_request.h"
#include "report/summary.h"
#include "report/table.h"
#include "report/telemetry.h"
#include "scenario/replay_flags.h"
#include "sim/outcome.h"
#include "sim/run.h"
#include "workload/agentic_source.h"
#include "workload/load.h"

namespace dynosim::cli {
namespace {

using Clock = std::chrono::steady_clock;

std::tm LocalTime() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  return local;
}

// The error of an interrupted run; its text is not shown.
std::unexpected<Error> Stopped() { return FailedError("", "interrupted"); }

Result<sim::Outcome> Simulate(const scenario::Replay& replay, workload::RequestSource& source) {
  Progress progress;
  const sim::RunHooks hooks{
      .progress = [&](double now_ms, std::uint64_t done, std::uint64_t total) {
        progress.Update(now_ms, done, total);
        return !Interrupted();
      }};
  auto outcome = replay.scenario.online ? live::RunOnline(replay.scenario, source, hooks)
                                        : sim::RunOffline(replay.scenario, source, hooks);
  if (Interrupted()) {
    return Stopped();
  }
  return outcome;
}

Result<void> Print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    return FailedError("", "cannot write to the standard output");
  }
  return {};
}

Result<void> WriteFiles(const scenario::Replay& replay, const sim::Outcome& outcome,
                        const workload::RequestSource& source, const report::Summary& summary) {
  const report::SessionNames names = [&](std::uint32_t session) {
    return source.SessionName(session);
  };
  DYNO_TRY_VOID(report::WriteJsonReport(replay.report_json, {.summary = summary,
                                                             .outcome = outcome,
                                                             .scenario = replay.scenario,
                                                             .session_names = names,
                                                             .agentic = source.Agentic()}));
  if (!replay.report_jsonl.empty()) {
    DYNO_TRY_VOID(
        report::WriteRequestsJsonl(replay.report_jsonl, outcome, names, source.Agentic()));
  }
  if (!replay.scenario.telemetry.jsonl_path.empty()) {
    DYNO_TRY_VOID(report::WriteTelemetryJsonl(replay.scenario.telemetry.jsonl_path, outcome));
  }
  return {};
}

Result<void> Replay(const scenario::ReplayFlags& flags) {
  DYNO_TRY(scenario::Replay replay, scenario::BuildReplay(flags));
  DYNO_TRY_VOID(ResolveOutputs(replay, LocalTime()));
  if (flags.telemetry_sample_interval_ms && !replay.scenario.telemetry.enabled()) {
    std::fputs(
        "dynosim: warning: --telemetry-sample-interval-ms does nothing without --capture-telemetry "
        "or --telemetry-jsonl\n",
        stderr);
  }
  const Clock::time_point start = Clock::now();
  DYNO_TRY(const workload::LoadedWorkload loaded,
           workload::LoadWorkload(replay.scenario.workload, replay.scenario.block_size()));
  for (const std::string& warning : loaded.warnings) {
    std::fprintf(stderr, "dynosim: warning: %s\n", warning.c_str());
  }
  if (Interrupted()) {
    return Stopped();
  }
  DYNO_TRY(const sim::Outcome outcome, Simulate(replay, *loaded.source));
  const std::chrono::duration<double, std::milli> wall = Clock::now() - start;
  report::Summary summary =
      report::Summarize(outcome, replay.scenario, {.wall_time_ms = wall.count()});
  if (const workload::AgenticSource* const agentic = loaded.source->Agentic()) {
    summary.agentic = report::SummarizeAgentic(*agentic, replay.scenario);
  }
  // Files first: a reader that closes the pipe early must not cost the report. The table is shown
  // even when a file cannot be written.
  const Result<void> written = WriteFiles(replay, outcome, *loaded.source, summary);
  std::string text = report::RenderTable(summary) + "\n";
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
