// SPDX-License-Identifier: Apache-2.0
// What a search leaves behind (chapter 60, C.3): recommendation.json, recommendation.csv, and the
// best deployments as documents of `predict`. Equal searches give equal bytes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "search/candidate.h"
#include "search/search.h"

namespace dynosim::search {

struct RankedResult {
  const Search& search;
  const std::vector<CandidateResult>& results;
  std::vector<std::size_t> top;     // best first, as many as are kept
  std::vector<std::size_t> pareto;  // by trial
};

RankedResult RankResults(const Search& search, const std::vector<CandidateResult>& results,
                         std::size_t max_top);

// "candidate-000001" for trial 0.
std::string CandidateId(std::size_t trial);
// Candidates by status and reason: {"evaluated": 4, "feasible": 3, ...}.
Json CountsJson(const std::vector<CandidateResult>& results);
// Path of a recommendation below the output directory, rank from 1.
std::string RecommendationFile(std::size_t rank);

Json RecommendationJson(const RankedResult& ranked);
std::string RecommendationCsv(const RankedResult& ranked);

// Writes all files, recommendation.json last.
Result<void> WriteResultFiles(const std::string& directory, const RankedResult& ranked);

}  // namespace dynosim::search
