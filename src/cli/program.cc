// SPDX-License-Identifier: Apache-2.0
// Parsing with CLI11; its exceptions end here.
#include "cli/program.h"

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "cli/cmd_compare.h"
#include "cli/cmd_estimate.h"
#include "cli/cmd_explain.h"
#include "cli/cmd_predict.h"
#include "cli/cmd_recommend.h"
#include "cli/cmd_replay.h"
#include "cli/cmd_serve.h"
#include "cli/cmd_trace.h"
#include "cli/replay_options.h"
#include "config/decode.h"
#include "scenario/replay_flags.h"

#ifndef DYNO_VERSION
#define DYNO_VERSION "0.1.0"
#endif

namespace dynosim::cli {
namespace {

constexpr std::string_view kVersion = "dynosim " DYNO_VERSION;

// Control characters would break the one line that an error is.
std::string OneLine(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

// First argument that no option took, with the nearest flag as a hint.
Error UnknownArgument(const CLI::App& command, const std::string& argument) {
  if (!argument.starts_with('-')) {
    return {.where = "", .message = "unexpected argument '" + argument + "'"};
  }
  const std::string name = argument.substr(0, argument.find('='));
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& long_name : option->get_lnames()) {
      flags.push_back("--" + long_name);
    }
  }
  const std::vector<std::string_view> known(flags.begin(), flags.end());
  const std::string_view nearest = config::NearestName(name, known);
  return {.where = "",
          .message = "unknown flag " + name +
                     (nearest.empty() ? std::string("; see dynosim --help")
                                      : "; did you mean " + std::string(nearest) + "?")};
}

// The options of every command; they outlive the parser.
struct Options {
  scenario::ReplayFlags replay;
  std::string report;
  std::string request;
  TraceOptions trace;
  PredictOptions predict;
  RecommendOptions recommend;
  EstimateOptions estimate;
  ListOptions lists;
  CompareCommand compare;
};

void AddCommands(CLI::App& app, Options& options) {
  CLI::App* predict = AddPredictCommand(app, options.predict);
  CLI::App* recommend = AddRecommendCommand(app, options.recommend);
  CLI::App* replay = app.add_subcommand(
      "replay", "Replays a trace or synthetic traffic through simulated workers");
  AddReplayOptions(*replay, options.replay);
  AddEstimateCommand(app, options.estimate);
  AddTraceCommand(app, options.trace);
  CLI::App* explain =
      app.add_subcommand("explain", "Prints the routing decisions of one request of a report");
  explain->add_option("report", options.report, "Report written with --capture-routing")
      ->type_name("REPORT")
      ->required();
  explain
      ->add_option("--request", options.request,
                   "uuid, request_id or number (from 1) of the request")
      ->type_name("ID")
      ->required();
  AddCompareCommand(app, options.compare);
  AddListCommands(app, options.lists);
  CLI::App* schema = AddSchemaCommand(app, options.predict);
  // What these do not know is reported with the nearest flag.
  for (CLI::App* command : {predict, recommend, replay, schema}) {
    command->allow_extras();
  }
}

int RunCommand(const CLI::App& app, const Options& options, const LiveCommands& live) {
  for (const char* name : {"predict", "recommend", "replay", "schema"}) {
    const CLI::App& command = *app.get_subcommand(name);
    if (const std::vector<std::string> rest = command.remaining(); !rest.empty()) {
      return ReportError(UnknownArgument(command, rest.front()));
    }
  }
  if (app.got_subcommand("predict")) {
    return RunPredict(options.predict);
  }
  if (app.got_subcommand("recommend")) {
    return RunRecommend(options.recommend);
  }
  if (app.got_subcommand("schema")) {
    return RunSchema(options.predict);
  }
  if (app.got_subcommand("replay")) {
    return RunReplay(options.replay);
  }
  if (app.got_subcommand("explain")) {
    return RunExplain(options.report, options.request);
  }
  if (app.got_subcommand("estimate")) {
    return RunEstimate(options.estimate);
  }
  if (live.parsed()) {
    return live.Run();
  }
  if (app.got_subcommand("compare")) {
    return RunCompare(options.compare);
  }
  if (app.got_subcommand("models")) {
    return RunModels(options.lists);
  }
  if (app.got_subcommand("systems")) {
    return RunSystems(options.lists);
  }
  if (!options.trace.action.empty()) {
    return RunTrace(options.trace);
  }
  return ReportError(
      {.where = "",
       .message = "a command is needed, such as predict or replay; see dynosim --help"});
}

int Run(int argc, const char* const* argv) {
  CLI::App app("Simulates LLM serving: predicts latency and throughput of a deployment.",
               "dynosim");
  app.set_version_flag("--version", std::string(kVersion));
  Options options;
  AddCommands(app, options);
  const LiveCommands live(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> rest = app.remaining(true);
    return ReportError(rest.empty() ? Error{.where = "", .message = error.what()}
                                    : UnknownArgument(app, rest.front()));
  }
  return RunCommand(app, options, live);
}

}  // namespace

int ReportError(const Error& error) {
  const std::string text = "dynosim: error: " + OneLine(error.Text()) + "\n";
  std::fputs(text.c_str(), stderr);
  return error.kind == ErrorKind::kUsage ? kExitUsage : kExitFailed;
}

Result<void> Print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return FailedError("", "cannot write to the standard output");
  }
  return {};
}

int RunProgram(int argc, const char* const* argv) {
  try {
    return Run(argc, argv);
  } catch (const std::bad_alloc&) {
    return ReportError({.kind = ErrorKind::kFailed, .where = "", .message = "out of memory"});
  } catch (const std::exception& error) {
    return ReportError({.kind = ErrorKind::kFailed, .where = "", .message = error.what()});
  }
}

}  // namespace dynosim::cli
