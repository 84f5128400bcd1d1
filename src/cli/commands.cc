// SPDX-License-Identifier: Apache-2.0
// A new command is a member of Options, a line in Declare and one in Run.
#include "cli/commands.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "cli/cmd_compare.h"
#include "cli/cmd_estimate.h"
#include "cli/cmd_explain.h"
#include "cli/cmd_predict.h"
#include "cli/cmd_recommend.h"
#include "cli/cmd_reference.h"
#include "cli/cmd_replay.h"
#include "cli/cmd_serve.h"
#include "cli/cmd_trace.h"
#include "cli/help.h"
#include "cli/program.h"
#include "cli/refused_flags.h"
#include "cli/replay_options.h"
#include "cli/version.h"
#include "config/decode.h"
#include "scenario/replay_flags.h"

namespace dynosim::cli {
namespace {

// What these do not know is reported with the nearest flag.
constexpr const char* kOpen[] = {"predict", "recommend", "replay", "schema"};

void AddExplainCommand(CLI::App& app, std::string& report, std::string& request) {
  CLI::App* const explain =
      app.add_subcommand("explain", "Prints the routing decisions of one request of a report");
  explain->add_option("report", report, "Report written with --capture-routing")
      ->type_name("REPORT")
      ->required();
  explain->add_option("--request", request, "uuid, request_id or number (from 1) of the request")
      ->type_name("ID")
      ->required();
}

}  // namespace

// They outlive the parser.
struct Commands::Options {
  scenario::ReplayFlags replay;
  std::string report;
  std::string request;
  TraceOptions trace;
  PredictOptions predict;
  RecommendOptions recommend;
  EstimateOptions estimate;
  ListOptions lists;
  CompareCommand compare;
  CompletionOptions completion;
  std::optional<LiveCommands> live;
};

Commands::Commands(CLI::App& app) : app_(app), options_(std::make_unique<Options>()) {
  // Subcommands inherit these, so they come first.
  UseHelp(app);
  app.set_help_flag("-h,--help", "Prints the common flags and examples");
  app.set_help_all_flag("--help-all", "Prints all flags");
  app.set_version_flag("--version", VersionText, "Prints version, build and measured data");
  // The word after a command is its own, even where it names another: `schema recommend`.
  app.require_subcommand(0, 1);
  Options& o = *options_;
  AddPredictCommand(app, o.predict);
  AddRecommendCommand(app, o.recommend);
  CLI::App* const replay = app.add_subcommand(
      "replay", "Replays a trace or synthetic traffic through simulated workers");
  AddReplayOptions(*replay, o.replay);
  AddEstimateCommand(app, o.estimate);
  o.live.emplace(app);
  AddTraceCommand(app, o.trace);
  AddExplainCommand(app, o.report, o.request);
  AddCompareCommand(app, o.compare);
  AddListCommands(app, o.lists);
  AddSchemaCommand(app, o.predict);
  AddCompletionCommand(app, o.completion);
  AddReferenceCommand(app);
  for (const char* name : kOpen) {
    app.get_subcommand(name)->allow_extras();
  }
}

Commands::~Commands() = default;

int Commands::Run() const {
  const Options& o = *options_;
  for (const char* name : kOpen) {
    const CLI::App& command = *app_.get_subcommand(name);
    if (const std::vector<std::string> rest = command.remaining(); !rest.empty()) {
      return ReportError(UnknownArgument(command, rest.front()));
    }
  }
  const std::pair<const char*, std::function<int()>> runs[] = {
      {"predict", [&] { return RunPredict(o.predict); }},
      {"recommend", [&] { return RunRecommend(o.recommend); }},
      {"replay", [&] { return RunReplay(o.replay); }},
      {"estimate", [&] { return RunEstimate(o.estimate); }},
      {"trace", [&] { return RunTrace(o.trace); }},
      {"explain", [&] { return RunExplain(o.report, o.request); }},
      {"compare", [&] { return RunCompare(o.compare); }},
      {"models", [&] { return RunModels(o.lists); }},
      {"systems", [&] { return RunSystems(o.lists); }},
      {"schema", [&] { return RunSchema(o.predict); }},
      {"completion", [&] { return RunCompletion(app_, o.completion); }},
      {"reference", [&] { return RunReference(app_); }},
  };
  for (const auto& [name, run] : runs) {
    if (app_.got_subcommand(name)) {
      return run();
    }
  }
  if (o.live->parsed()) {
    return o.live->Run();
  }
  return ReportError(
      {.where = "",
       .message = "a command is needed, such as predict or replay; see dynosim --help"});
}

// A flag, or the name of a command, that is nearly right is shown.
Error UnknownArgument(const CLI::App& command, const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  if (std::optional<Error> refusal = RefusalOf(command.get_name(), name)) {
    return *std::move(refusal);
  }
  const bool is_flag = argument.starts_with('-');
  std::vector<std::string> names;
  if (is_flag) {
    for (const CLI::Option* option : command.get_options()) {
      for (const std::string& long_name : option->get_lnames()) {
        names.push_back("--" + long_name);
      }
    }
  } else {
    for (const CLI::App* below : command.get_subcommands({})) {
      names.push_back(below->get_name());
    }
  }
  if (names.empty()) {
    return {.where = "", .message = "unexpected argument '" + argument + "'"};
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string_view nearest = config::NearestName(name, known);
  return {.where = "",
          .message = (is_flag ? "unknown flag " + name : "unknown command '" + argument + "'") +
                     (nearest.empty() ? std::string("; see dynosim --help")
                                      : "; did you mean " + std::string(nearest) + "?")};
}

}  // namespace dynosim::cli
