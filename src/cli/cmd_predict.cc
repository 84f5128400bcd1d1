// SPDX-License-Identifier: Apache-2.0
// Order: options, document, overrides, checks, output directory, run, files, standard output.
#include "cli/cmd_predict.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/json.h"
#include "base/result.h"
#include "cli/document.h"
#include "cli/interrupt.h"
#include "cli/output_directory.h"
#include "cli/program.h"
#include "cli/report_paths.h"
#include "cli/run_scenario.h"
#include "engine/settings.h"
#include "engine/settings_decode.h"
#include "report/chrome_trace.h"
#include "report/html_page.h"
#include "report/json_report.h"
#include "report/per_request.h"
#include "report/run_report.h"
#include "report/summary.h"
#include "report/table.h"
#include "scenario/prediction.h"
#include "scenario/scenario.h"
#include "search/schema.h"

namespace dynosim::cli {
namespace {

using scenario::Scenario;
using scenario::Stack;

Result<void> CheckOptions(const PredictOptions& options) {
  if (!options.unavailable.empty()) {
    return UsageError(options.unavailable, "is not available in this version");
  }
  if (options.format != "table" && options.format != "json") {
    return UsageError("--format", "must be table or json, got '" + options.format + "'");
  }
  return {};
}

Result<report::FinishedRun> Simulate(const Scenario& scenario, RunClock::time_point start) {
  auto run = RunWithProgress(scenario, start);
  if (!run && !Interrupted()) {
    return std::unexpected(scenario::InTermsOfDocument(std::move(run).error()));
  }
  return run;
}

// One line per role: what runs, and where its times come from.
std::string EngineLine(const engine::EngineSettings& s, std::uint32_t workers) {
  const Json* kind = s.timing_config.Find("provider");
  kind = kind == nullptr ? s.timing_config.Find("type") : kind;
  return fmt::format("Engine ({}): {} x {}, {} KV blocks of {} tokens per rank, timing {}\n",
                     engine::WorkerRoleName(s.worker_role), workers, engine::BackendName(s.backend),
                     s.num_gpu_blocks, s.block_size,
                     kind != nullptr && kind->is_string() ? kind->string() : "unknown");
}

std::string EngineLines(const Scenario& s) {
  if (!s.disaggregated()) {
    return EngineLine(s.engine, s.num_workers);
  }
  return EngineLine(*s.prefill_engine, s.num_prefill_workers) +
         EngineLine(*s.decode_engine, s.num_decode_workers);
}

Result<void> Predict(const PredictOptions& options) {
  const RunClock::time_point start = RunClock::now();
  DYNO_TRY_VOID(CheckOptions(options));
  DYNO_TRY(const Stack stack, ReadStack(options.stack));
  DYNO_TRY(const Json document, ReadDocument(options.config, options.overrides));
  DYNO_TRY(Scenario scenario, scenario::BuildPrediction(document, stack, options.config));
  scenario.capture_per_request = options.capture_per_request;
  scenario.pass_by_pass = options.pass_by_pass;
  scenario.timeline = !options.report_html.empty() || !options.trace_out.empty();
  scenario.telemetry.page = !options.report_html.empty();
  std::vector<std::string> inputs = {options.config};
  if (scenario.workload.trace) {
    const std::vector<std::string>& files = scenario.workload.trace->files;
    inputs.insert(inputs.end(), files.begin(), files.end());
  }
  const std::string path = InDirectory(options.output_directory, "prediction.json");
  DYNO_TRY_VOID(CheckOutputs({{.flag = "--output-dir", .path = path},
                              {.flag = "--report-html", .path = options.report_html},
                              {.flag = "--trace-out", .path = options.trace_out}},
                             inputs));
  DYNO_TRY_VOID(PrepareOutputDirectory(options.output_directory, options.overwrite, inputs));
  DYNO_TRY(const report::FinishedRun run, Simulate(scenario, start));
  const report::ReportParts parts = run.Parts(scenario);
  DYNO_TRY_VOID(report::WriteJsonReport(path, parts));
  if (!options.report_html.empty()) {
    DYNO_TRY_VOID(report::WriteHtmlPage(options.report_html,
                                        {.title = "Predicted deployment", .run = &parts}));
  }
  if (!options.trace_out.empty()) {
    DYNO_TRY_VOID(report::WriteChromeTraceFile(options.trace_out, run.outcome, run.session_names));
  }
  if (options.capture_per_request) {
    DYNO_TRY_VOID(
        report::WriteRequestsJsonl(InDirectory(options.output_directory, "requests.jsonl"),
                                   run.outcome, run.session_names, run.source->Agentic()));
  }
  if (options.format == "json") {
    return Print(DumpJson(report::SummaryJson(run.summary), {.sort_keys = true}) + "\n");
  }
  return Print(report::RenderTable(run.summary) + "\n" + EngineLines(scenario) +
               "Saved full report to: " + path + "\n");
}

}  // namespace

CLI::App* AddPredictCommand(CLI::App& app, PredictOptions& options) {
  CLI::App* command =
      app.add_subcommand("predict", "Predicts a deployment that a YAML document describes");
  AddDocumentOptions(*command, options.config, options.overrides, options.stack);
  command
      ->add_option("--output-dir", options.output_directory,
                   "Directory of the results (default ./aisimulate-output)")
      ->type_name("DIR")
      ->take_last();
  command->add_flag("--overwrite", options.overwrite,
                    "Replaces the results in a directory that is not empty");
  command->add_option("--format", options.format, "Standard output: table (default) or json")
      ->type_name("FORMAT:{table,json}")
      ->take_last();
  command->add_flag("--capture-per-request", options.capture_per_request,
                    "Writes requests.jsonl, and a row per request into the report");
  command->add_option("--report-html", options.report_html, "Writes a page with charts")
      ->type_name("PATH")
      ->take_last();
  command
      ->add_option("--trace-out", options.trace_out,
                   "Writes requests and passes as a trace for Perfetto")
      ->type_name("PATH")
      ->take_last();
  command->add_flag("--pass-by-pass", options.pass_by_pass,
                    "Simulates every pass on its own; slower, with the same results");
  for (const char* name : {"--detail", "--detail-top-n", "--diagnostics"}) {
    command
        ->add_option_function<std::string>(
            name, [&options, name](const std::string&) { options.unavailable = name; })
        ->take_last()
        ->group("");
  }
  command->add_flag_callback("--online", [&options] { options.unavailable = "--online"; })
      ->group("");
  return command;
}

CLI::App* AddSchemaCommand(CLI::App& app, PredictOptions& options) {
  CLI::App* command = app.add_subcommand(
      "schema", "Prints the JSON schema of the document of predict or recommend");
  command->add_option("document", options.schema_of, "predict (default) or recommend")
      ->type_name("COMMAND");
  AddStackOption(*command, options.stack);
  return command;
}

int RunPredict(const PredictOptions& options) {
  WatchInterrupts();
  const Result<void> done = Predict(options);
  if (done) {
    return kExitOk;
  }
  if (Interrupted()) {
    std::fputs("dynosim: interrupted; nothing was written\n", stderr);
    return kExitInterrupted;
  }
  return ReportError(done.error());
}

int RunSchema(const PredictOptions& options) {
  const Result<Stack> stack = ReadStack(options.stack);
  if (!stack) {
    return ReportError(stack.error());
  }
  if (options.schema_of != "predict" && options.schema_of != "recommend") {
    return ReportError({.where = "schema",
                        .message = "the document must be that of predict or recommend, got '" +
                                   options.schema_of + "'"});
  }
  const Json schema = options.schema_of == "predict" ? scenario::PredictionSchema(*stack)
                                                     : search::RecommendationSchema(*stack);
  const Result<void> printed = Print(DumpJson(schema, {.indent = 2}) + "\n");
  return printed ? kExitOk : ReportError(printed.error());
}

}  // namespace dynosim::cli
