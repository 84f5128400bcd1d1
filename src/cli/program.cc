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
#include "cli/cmd_estimate.h"
#include "cli/cmd_explain.h"
#include "cli/cmd_predict.h"
#include "cli/cmd_recommend.h"
#include "cli/cmd_replay.h"
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

int Run(int argc, const char* const* argv) {
  CLI::App app("Simulates LLM serving: predicts latency and throughput of a deployment.",
               "dynosim");
  app.set_version_flag("--version", std::string(kVersion));
  CLI::App* replay = app.add_subcommand(
      "replay", "Replays a trace or synthetic traffic through simulated workers");
  scenario::ReplayFlags flags;
  AddReplayOptions(*replay, flags);
  replay->allow_extras();
  std::string report;
  std::string request;
  CLI::App* explain =
      app.add_subcommand("explain", "Prints the routing decisions of one request of a report");
  explain->add_option("report", report, "Report written with --capture-routing")
      ->type_name("REPORT")
      ->required();
  explain->add_option("--request", request, "uuid, request_id or number (from 1) of the request")
      ->type_name("ID")
      ->required();
  TraceOptions trace;
  AddTraceCommand(app, trace);
  PredictOptions prediction;
  CLI::App* predict = AddPredictCommand(app, prediction);
  CLI::App* schema = AddSchemaCommand(app, prediction);
  RecommendOptions recommendation;
  CLI::App* recommend = AddRecommendCommand(app, recommendation);
  recommend->allow_extras();
  predict->allow_extras();
  schema->allow_extras();
  EstimateOptions estimate;
  AddEstimateCommand(app, estimate);
  ListOptions lists;
  AddListCommands(app, lists);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> rest = app.remaining(true);
    return ReportError(rest.empty() ? Error{.where = "", .message = error.what()}
                                    : UnknownArgument(app, rest.front()));
  }
  for (const CLI::App* command : {replay, predict, recommend, schema}) {
    if (const std::vector<std::string> rest = command->remaining(); !rest.empty()) {
      return ReportError(UnknownArgument(*command, rest.front()));
    }
  }
  if (app.got_subcommand("estimate")) {
    return RunEstimate(estimate);
  }
  if (app.got_subcommand("models")) {
    return RunModels(lists);
  }
  if (app.got_subcommand("systems")) {
    return RunSystems(lists);
  }
  if (!trace.action.empty()) {
    return RunTrace(trace);
  }
  if (predict->parsed()) {
    return RunPredict(prediction);
  }
  if (recommend->parsed()) {
    return RunRecommend(recommendation);
  }
  if (schema->parsed()) {
    return RunSchema(prediction);
  }
  if (explain->parsed()) {
    return RunExplain(report, request);
  }
  if (!replay->parsed()) {
    return ReportError(
        {.where = "",
         .message = "a command is needed, such as predict or replay; see dynosim --help"});
  }
  return RunReplay(flags);
}

}  // namespace

int ReportError(const Error& error) {
  const std::string text = "dynosim: error: " + OneLine(error.Text()) + "\n";
  std::fputs(text.c_str(), stderr);
  return error.kind == ErrorKind::kUsage ? kExitUsage : kExitFailed;
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
