// SPDX-License-Identifier: Apache-2.0
#include "python/run.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "cli/cmd_estimate.h"
#include "cli/document.h"
#include "cli/estimate_query.h"
#include "cli/replay_options.h"
#include "live/online_replay.h"
#include "report/json_report.h"
#include "report/json_writer.h"
#include "report/per_request.h"
#include "report/run_report.h"
#include "report/summary.h"
#include "report/table.h"
#include "report/telemetry.h"
#include "scenario/prediction.h"
#include "scenario/replay_flags.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"

namespace dynosim::python {
namespace {

using Clock = std::chrono::steady_clock;

Result<std::unique_ptr<Run>> Simulate(scenario::Scenario scenario, const RunCalls& calls) {
  const Clock::time_point start = Clock::now();
  Clock::time_point next = start;
  report::RunSetup setup;
  if (scenario.online) {
    setup.simulate = [](const auto& played, auto& source, const auto& hooks) {
      return live::RunOnline(played, source, hooks);
    };
  }
  setup.hooks.progress = [&](double /*now_ms*/, std::uint64_t /*done*/, std::uint64_t /*total*/) {
    const Clock::time_point now = Clock::now();
    if (!calls.keep_going || now < next) {
      return true;
    }
    next = now + kAskEvery;
    return calls.keep_going();
  };
  if (calls.sample) {
    setup.hooks.sampled = [&](const sim::TelemetrySample& sample) {
      return calls.sample(report::SampleText(sample));
    };
  }
  setup.warn = calls.warn;
  setup.elapsed_ms = [start] {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  DYNO_TRY(report::FinishedRun finished, report::RunScenario(scenario, setup));
  return std::make_unique<Run>(std::move(scenario), std::move(finished));
}

Result<void> RefuseOutputs(const scenario::ReplayFlags& flags) {
  const std::pair<const char*, bool> outputs[] = {
      {"--report-json", flags.report_json.has_value()},
      {"--report-jsonl", flags.report_jsonl.has_value()},
      {"--telemetry-jsonl", flags.telemetry_jsonl.has_value()}};
  for (const auto& [name, given] : outputs) {
    if (given) {
      return UsageError(name, "is no argument of a run: save the result instead");
    }
  }
  return {};
}

}  // namespace

std::string Run::SummaryText() const { return DumpJson(report::SummaryJson(finished_.summary)); }

std::string Run::ReportText() const {
  std::string text;
  report::JsonWriter out({.indent = 0, .sort_keys = true},
                         [&text](std::string_view part) { text += part; });
  report::WriteReport(out, finished_.Parts(scenario_));
  out.Flush();
  return text;
}

std::string Run::Table() const { return report::RenderTable(finished_.summary); }

Result<void> Run::WriteReport(const std::string& path) const {
  return report::WriteJsonReport(path, finished_.Parts(scenario_));
}

Result<void> Run::WriteRequests(const std::string& path) const {
  if (!scenario_.capture_per_request) {
    return UsageError("", "the run has no rows of requests; it needs capture_per_request");
  }
  return report::WriteRequestsJsonl(path, finished_.outcome, finished_.session_names,
                                    finished_.source->Agentic());
}

Result<void> Run::WriteTelemetry(const std::string& path) const {
  return report::WriteTelemetryJsonl(path, finished_.outcome);
}

Result<std::unique_ptr<Run>> RunReplay(const std::vector<std::string>& arguments,
                                       const RunCalls& calls) {
  DYNO_TRY(const scenario::ReplayFlags flags, cli::ParseReplayArguments(arguments));
  DYNO_TRY_VOID(RefuseOutputs(flags));
  DYNO_TRY(scenario::Replay replay, scenario::BuildReplay(flags));
  return Simulate(std::move(replay.scenario), calls);
}

Result<std::unique_ptr<Run>> RunPrediction(const Prediction& prediction, const RunCalls& calls) {
  DYNO_TRY(const scenario::Stack stack, cli::ReadStack(prediction.stack));
  DYNO_TRY(const Json document,
           cli::ReadDocumentText(prediction.document, prediction.where, prediction.overrides));
  DYNO_TRY(scenario::Scenario scenario,
           scenario::BuildPrediction(document, stack, prediction.where));
  scenario.capture_per_request = prediction.capture_per_request;
  auto run = Simulate(std::move(scenario), calls);
  if (!run) {
    return std::unexpected(scenario::InTermsOfDocument(std::move(run).error()));
  }
  return run;
}

Estimates::Estimates(std::vector<std::string> folders)
    : estimator_(cli::OpenCatalog(std::move(folders))) {}

Result<std::string> Estimates::Answer(const std::string& question) {
  DYNO_TRY(const Json json, ParseJson(question, "question"));
  DYNO_TRY(const cli::EstimateQuery query, cli::DecodeEstimateQuery(json, ""));
  DYNO_TRY(const Json answer, estimator_.Answer(query));
  return DumpJson(answer);
}

}  // namespace dynosim::python
