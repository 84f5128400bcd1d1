// SPDX-License-Identifier: Apache-2.0
#include "search/result_files.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/result.h"
#include "config/yaml_writer.h"
#include "search/candidate.h"
#include "search/paths.h"
#include "search/ranking.h"
#include "search/search.h"
#include "search/settings.h"

namespace dynosim::search {
namespace {

constexpr std::string_view kSchemaVersion = "1.1";

Json IdList(const std::vector<std::size_t>& trials) {
  Json::Array ids;
  for (const std::size_t trial : trials) {
    ids.emplace_back(CandidateId(trial));
  }
  return ids;
}

bool Contains(const std::vector<std::size_t>& trials, std::size_t trial) {
  return std::ranges::find(trials, trial) != trials.end();
}

Json CandidateJson(const RankedResult& ranked, std::size_t trial) {
  Json json;
  json.Add("candidate_id", CandidateId(trial));
  json.Add("config", ranked.search.ChoicesOf(trial));
  Json result = ranked.results[trial].ToJson();
  for (Json::Member& member : result.object()) {
    json.Add(std::move(member.first), std::move(member.second));
  }
  return json;
}

// Quoted only where a comma, quote or line end asks for it.
std::string CsvField(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    return std::string(text);
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c;
    if (c == '"') {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string JsonField(const Json& value) {
  return value.is_null() ? "" : CsvField(DumpJson(value, {.sort_keys = true}));
}

}  // namespace

RankedResult RankResults(const Search& search, const std::vector<CandidateResult>& results,
                         std::size_t max_top) {
  RankedResult ranked{.search = search, .results = results, .top = {}, .pareto = {}};
  ranked.top = Rank(results, search.settings.target);
  ranked.top.resize(std::min(ranked.top.size(), max_top));
  ranked.pareto = ParetoFront(results);
  return ranked;
}

std::string CandidateId(std::size_t trial) { return fmt::format("candidate-{:06}", trial + 1); }

std::string RecommendationFile(std::size_t rank) {
  return fmt::format("recommendations/{:04}.yaml", rank);
}

Json CountsJson(const std::vector<CandidateResult>& results) {
  std::array<std::uint64_t, kStatuses> counts{};
  for (const CandidateResult& result : results) {
    ++counts[static_cast<std::size_t>(result.status)];
  }
  Json json;
  json.Add("evaluated", results.size());
  for (std::size_t i = 0; i < kStatuses; ++i) {
    json.Add(std::string(StatusName(static_cast<Status>(i))), counts[i]);
  }
  return json;
}

Json RecommendationJson(const RankedResult& ranked) {
  Json::Array candidates;
  for (std::size_t trial = 0; trial < ranked.results.size(); ++trial) {
    candidates.push_back(CandidateJson(ranked, trial));
  }
  Json views;
  views.Add("top_n", IdList(ranked.top));
  views.Add("pareto_front", IdList(ranked.pareto));
  Json provenance;
  provenance.Add("implementation", "dynosim");
  provenance.Add("search_strategy", AlgorithmName(ranked.search.plan.algorithm));
  provenance.Add("config", WithoutExecution(ranked.search.document));
  Json json;
  json.Add("schema_version", kSchemaVersion);
  json.Add("candidate_retention", "all");
  json.Add("counts", CountsJson(ranked.results));
  json.Add("candidates", std::move(candidates));
  json.Add("views", std::move(views));
  json.Add("provenance", std::move(provenance));
  return json;
}

std::string RecommendationCsv(const RankedResult& ranked) {
  std::string csv =
      "schema_version,candidate_id,status,reason_category,reason,used_gpus,score,power_w,"
      "power_coverage,power_source,config_json,prediction_config_json,metrics_json,"
      "objectives_json,provenance_json,is_top_n,is_pareto\n";
  for (std::size_t trial = 0; trial < ranked.results.size(); ++trial) {
    const CandidateResult& r = ranked.results[trial];
    const Json json = r.ToJson();
    csv += fmt::format("{},{},{},{},{},{},{},,,,{},{},{},{},,{},{}\n", kSchemaVersion,
                       CandidateId(trial), StatusName(r.status), r.reason_category,
                       CsvField(r.reason), r.used_gpus, JsonField(*json.Find("score")),
                       JsonField(ranked.search.ChoicesOf(trial)), JsonField(r.prediction_config),
                       JsonField(r.metrics), JsonField(*json.Find("objectives")),
                       Contains(ranked.top, trial), Contains(ranked.pareto, trial));
  }
  return csv;
}

Result<void> WriteResultFiles(const std::string& directory, const RankedResult& ranked) {
  const auto path = [&](const std::string& name) {
    return (std::filesystem::path(directory) / name).string();
  };
  for (std::size_t i = 0; i < ranked.top.size(); ++i) {
    DYNO_TRY_VOID(
        WriteFileAtomically(path(RecommendationFile(i + 1)),
                            config::WriteYaml(ranked.results[ranked.top[i]].prediction_config)));
  }
  DYNO_TRY_VOID(WriteFileAtomically(path("recommendation.csv"), RecommendationCsv(ranked)));
  return WriteFileAtomically(
      path("recommendation.json"),
      DumpJson(RecommendationJson(ranked), {.indent = 2, .sort_keys = true}) + "\n");
}

}  // namespace dynosim::search
