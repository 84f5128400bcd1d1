// SPDX-License-Identifier: Apache-2.0
// Order: options, document, overrides, space and trials, output directory, search, files, standard
// output.
#include "cli/cmd_recommend.h"

#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "cli/document.h"
#include "cli/interrupt.h"
#include "cli/output_directory.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/recommend_session.h"
#include "search/search.h"
#include "search/search_run.h"

namespace dynosim::cli {
namespace {

Result<void> RunOnAllCores(search::SearchRun& run) {
  CandidateProgress progress(run.finished());
  search::SearchHooks hooks;
  hooks.interrupted = [] { return Interrupted(); };
  hooks.progress = [&](std::size_t done, std::size_t total) { progress.Update(done, total); };
  hooks.warn = [&](const std::string& warning) {
    progress.Erase();
    std::fprintf(stderr, "dynosim: warning: %s\n", warning.c_str());
  };
  return run.RunPending(hooks);
}

Result<void> Recommend(const RecommendOptions& options) {
  DYNO_TRY(search::Search search, RecommendSession::Prepare(options));
  DYNO_TRY(RecommendSession session, RecommendSession::Open(options, std::move(search)));
  DYNO_TRY_VOID(RunOnAllCores(session.run()));
  if (!session.run().complete()) {
    return std::unexpected(session.InterruptedError());
  }
  DYNO_TRY(const Recommended done, session.Finish());
  if (!done.feasible) {
    std::fputs(done.counts.c_str(), stderr);
    return FailedError("", "no feasible candidate found; saved full result to: " +
                               InDirectory(options.output_directory, "recommendation.json"));
  }
  return Print(done.output);
}

void AddRecommendOptions(CLI::App& command, RecommendOptions& options) {
  AddDocumentOptions(command, options.config, options.overrides, options.stack);
  command
      .add_option("--output-dir", options.output_directory,
                  "Directory of the results (default ./aisimulate-output)")
      ->type_name("DIR")
      ->take_last();
  command.add_flag("--overwrite", options.overwrite,
                   "Replaces the results in a directory that is not empty");
  command.add_flag("--resume", options.resume,
                   "Goes on with the unfinished search of the output directory");
  command.add_option("--format", options.format, "Standard output: table (default) or json")
      ->type_name("FORMAT")
      ->take_last();
  command
      .add_option("--report-html", options.report_html,
                  "Writes a page with all candidates and the Pareto front")
      ->type_name("PATH")
      ->take_last();
  command.add_option("--top", options.top, "Deployments that are written, the best (default 20)")
      ->type_name("N")
      ->take_last();
}

}  // namespace

CLI::App* AddRecommendCommand(CLI::App& app, RecommendOptions& options) {
  CLI::App* command = app.add_subcommand(
      "recommend", "Searches the deployments that a YAML document describes for the best ones");
  AddRecommendOptions(*command, options);
  return command;
}

Result<RecommendOptions> ParseRecommendArguments(std::vector<std::string> arguments) {
  CLI::App command;
  RecommendOptions options;
  AddRecommendOptions(command, options);
  DYNO_TRY_VOID(ParseArguments(command, std::move(arguments)));
  return options;
}

int RunRecommend(const RecommendOptions& options) {
  WatchInterrupts();
  const Result<void> done = Recommend(options);
  if (done) {
    return kExitOk;
  }
  const int code = ReportError(done.error());
  return Interrupted() ? kExitInterrupted : code;
}

}  // namespace dynosim::cli
