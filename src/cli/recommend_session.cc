// SPDX-License-Identifier: Apache-2.0
#include "cli/recommend_session.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/result.h"
#include "cli/document.h"
#include "cli/output_directory.h"
#include "cli/report_paths.h"
#include "config/yaml_writer.h"
#include "report/html_page.h"
#include "scenario/prediction.h"
#include "search/candidate.h"
#include "search/journal.h"
#include "search/result_files.h"
#include "search/search.h"
#include "search/search_run.h"
#include "search/settings.h"

namespace dynosim::cli {
namespace {

namespace fs = std::filesystem;
using search::CandidateResult;
using search::RankedResult;

constexpr std::size_t kMaxTop = 9999;  // four digits

Result<void> CheckRecommendOptions(const RecommendOptions& options) {
  if (options.format != "table" && options.format != "json") {
    return UsageError("--format", "must be table or json, got '" + options.format + "'");
  }
  if (options.top == 0 || options.top > kMaxTop) {
    return UsageError("--top",
                      fmt::format("must be an integer from 1 to {}, got {}", kMaxTop, options.top));
  }
  if (options.resume && options.overwrite) {
    return UsageError("--resume", "cannot be combined with --overwrite");
  }
  return {};
}

std::string JournalPath(const RecommendOptions& options) {
  return InDirectory(options.output_directory, "recommendation.journal");
}

Result<search::Journal> OpenJournal(const RecommendOptions& options, const Json& subject,
                                    const std::vector<std::string>& inputs) {
  const std::string path = JournalPath(options);
  if (options.resume) {
    return search::Journal::Resume(path, subject);
  }
  std::error_code error;
  if (!options.overwrite && fs::exists(path, error)) {
    return UsageError("--output-dir", "directory " + options.output_directory +
                                          " has an unfinished search; --resume goes on with it, "
                                          "--overwrite starts again");
  }
  DYNO_TRY_VOID(PrepareOutputDirectory(options.output_directory, options.overwrite, inputs));
  return search::Journal::Create(path, subject);
}

// "throughput_per_gpu=..., throughput_per_user=..." or "score=..."
std::string ScoreText(const RankedResult& ranked, const CandidateResult& result) {
  if (ranked.search.settings.target != search::Target::kPareto) {
    return fmt::format("score={:.4g}", *result.score);
  }
  std::string text;
  for (const auto& [name, value] : result.objectives) {
    text += fmt::format("{}{}={:.4g}", text.empty() ? "" : ", ", name, value);
  }
  return text;
}

std::string RowPath(const RecommendOptions& options, std::size_t rank) {
  return InDirectory(options.output_directory, search::RecommendationFile(rank));
}

// "4 evaluated, 3 feasible, 1 infeasible", and why the others are not, one line a reason.
std::string CountLines(const std::vector<CandidateResult>& results) {
  std::string text;
  const Json counts = search::CountsJson(results);
  for (const Json::Member& count : counts.object()) {
    if (count.second.number() > 0.0) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count.second.number(), count.first);
    }
  }
  text += '\n';
  std::vector<std::pair<std::string, std::size_t>> reasons;
  for (std::size_t trial = 0; trial < results.size(); ++trial) {
    const std::string& category = results[trial].reason_category;
    const auto seen = [&](const auto& reason) { return reason.first == category; };
    if (!category.empty() && std::ranges::none_of(reasons, seen)) {
      reasons.emplace_back(category, trial);
    }
  }
  for (const auto& [category, trial] : reasons) {
    text += fmt::format("  {}, such as {}: {}\n", category, search::CandidateId(trial),
                        results[trial].reason);
  }
  return text;
}

std::string TableText(const RecommendOptions& options, const RankedResult& ranked) {
  std::string text = "AISimulate recommendations\n";
  for (std::size_t i = 0; i < ranked.top.size(); ++i) {
    const CandidateResult& result = ranked.results[ranked.top[i]];
    text += fmt::format("{}: {} used_gpus={} config={}\n", i + 1, ScoreText(ranked, result),
                        result.used_gpus, RowPath(options, i + 1));
  }
  return text + CountLines(ranked.results) +
         "Saved full result to: " + InDirectory(options.output_directory, "recommendation.json") +
         "\n";
}

std::string JsonText(const RecommendOptions& options, const RankedResult& ranked) {
  const bool pareto = ranked.search.settings.target == search::Target::kPareto;
  Json::Array rows;
  for (std::size_t i = 0; i < ranked.top.size(); ++i) {
    const CandidateResult& result = ranked.results[ranked.top[i]];
    Json objectives;
    if (pareto) {
      for (const auto& [name, value] : result.objectives) {
        objectives.Add(name, value);
      }
    }
    Json row;
    row.Add("rank", i + 1);
    row.Add("score", *result.score);
    row.Add("objectives", std::move(objectives));
    row.Add("used_gpus", result.used_gpus);
    row.Add("config_path", RowPath(options, i + 1));
    rows.push_back(std::move(row));
  }
  return DumpJson(Json(std::move(rows)), {.sort_keys = true}) + "\n";
}

// Every feasible candidate with both throughputs, and the document that gives it.
report::SearchView ViewOf(const RankedResult& ranked) {
  report::SearchView view{
      .x_name = "output tokens/s per user", .y_name = "output tokens/s per GPU", .points = {}};
  for (std::size_t trial = 0; trial < ranked.results.size(); ++trial) {
    const CandidateResult& result = ranked.results[trial];
    const auto value = [&](std::string_view name) {
      const auto found =
          std::ranges::find(result.objectives, name, &std::pair<std::string, double>::first);
      return found == result.objectives.end() ? std::optional<double>()
                                              : std::optional<double>(found->second);
    };
    const auto x = value("throughput_per_user");
    const auto y = value("throughput_per_gpu");
    if (result.status == search::Status::kFeasible && x && y) {
      view.points.push_back(
          {.name = search::CandidateId(trial),
           .x = *x,
           .y = *y,
           .on_front = std::ranges::find(ranked.pareto, trial) != ranked.pareto.end(),
           .document = config::WriteYaml(result.prediction_config)});
    }
  }
  return view;
}

}  // namespace

Result<search::Search> RecommendSession::Prepare(const RecommendOptions& options) {
  DYNO_TRY_VOID(CheckRecommendOptions(options));
  DYNO_TRY(const scenario::Stack stack, ReadStack(options.stack));
  DYNO_TRY(Json document,
           options.document ? ReadDocumentText(*options.document, options.config, options.overrides)
                            : ReadDocument(options.config, options.overrides));
  return search::PrepareSearch(std::move(document), stack, options.config);
}

Result<RecommendSession> RecommendSession::Open(RecommendOptions options, search::Search search,
                                                const std::string& sampler) {
  const bool bayesian = search.plan.algorithm == search::Algorithm::kBayesian;
  if (bayesian && sampler.empty()) {
    return UsageError(
        options.config,
        fmt::format("optimizer.algorithm: bayesian (the default) needs the Python package for more "
                    "than optimizer.max_trials {} candidates: python3 -m dynosim.recommend -c {}, "
                    "or --set optimizer.algorithm=random",
                    search.settings.max_trials, options.config));
  }
  std::vector<std::string> inputs = search.Inputs();
  if (!options.document) {
    inputs.push_back(options.config);
  }
  DYNO_TRY_VOID(CheckOutputs({{.flag = "--report-html", .path = options.report_html}}, inputs));
  DYNO_TRY(const Json subject, search.Subject(bayesian ? sampler : ""));
  DYNO_TRY(search::Journal journal, OpenJournal(options, subject, inputs));
  return RecommendSession(std::move(options),
                          search::SearchRun(std::move(search), std::move(journal)));
}

Error RecommendSession::InterruptedError() const {
  const std::string total = run_.search().plan.algorithm == search::Algorithm::kBayesian
                                ? std::to_string(run_.search().settings.max_trials)
                                : std::to_string(run_.results().size());
  return {.kind = ErrorKind::kFailed,
          .where = "",
          .message = fmt::format("interrupted; {} of {} candidates are kept, --resume goes on with "
                                 "them",
                                 run_.finished(), total)};
}

Result<Recommended> RecommendSession::Finish() {
  const RankedResult ranked = search::RankResults(run_.search(), run_.results(), options_.top);
  DYNO_TRY_VOID(search::WriteResultFiles(options_.output_directory, ranked));
  if (!options_.report_html.empty()) {
    const report::SearchView view = ViewOf(ranked);
    DYNO_TRY_VOID(report::WriteHtmlPage(options_.report_html,
                                        {.title = "Search for a deployment", .search = &view}));
  }
  run_.RemoveJournal();
  return Recommended{.feasible = !ranked.top.empty(),
                     .counts = CountLines(ranked.results),
                     .output = options_.format == "json" ? JsonText(options_, ranked)
                                                         : TableText(options_, ranked)};
}

}  // namespace dynosim::cli
