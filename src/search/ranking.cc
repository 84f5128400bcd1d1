// SPDX-License-Identifier: Apache-2.0
#include "search/ranking.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "search/candidate.h"
#include "search/settings.h"

namespace dynosim::search {
namespace {

// The first of equal deployments stands for all.
std::vector<std::size_t> DistinctFeasible(const std::vector<CandidateResult>& results) {
  std::set<std::string> seen;
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].status == Status::kFeasible &&
        seen.insert(DumpJson(results[i].prediction_config)).second) {
      numbers.push_back(i);
    }
  }
  return numbers;
}

bool Beats(const CandidateResult& a, const CandidateResult& b) {
  bool better = false;
  for (std::size_t k = 0; k < a.objectives.size(); ++k) {
    if (a.objectives[k].second < b.objectives[k].second) {
      return false;
    }
    better |= a.objectives[k].second > b.objectives[k].second;
  }
  return better;
}

}  // namespace

std::vector<std::size_t> ParetoFront(const std::vector<CandidateResult>& results) {
  // Best first objective first: whoever beats a candidate stands before it, so looking at those
  // that are in the front already is enough.
  std::vector<std::size_t> order = DistinctFeasible(results);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    const auto& x = results[a].objectives;
    const auto& y = results[b].objectives;
    return x[0].second != y[0].second ? x[0].second > y[0].second : x[1].second > y[1].second;
  });
  std::vector<std::size_t> front;
  for (const std::size_t i : order) {
    if (std::ranges::none_of(front, [&](std::size_t k) { return Beats(results[k], results[i]); })) {
      front.push_back(i);
    }
  }
  std::ranges::sort(front);
  return front;
}

std::vector<std::size_t> Rank(const std::vector<CandidateResult>& results, Target target) {
  if (target == Target::kPareto) {
    std::vector<std::size_t> front = ParetoFront(results);
    std::ranges::stable_sort(front, {},
                             [&](std::size_t i) { return results[i].objectives.back().second; });
    return front;
  }
  std::vector<std::size_t> order = DistinctFeasible(results);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    const CandidateResult& x = results[a];
    const CandidateResult& y = results[b];
    return *x.score != *y.score ? *x.score > *y.score : x.used_gpus < y.used_gpus;
  });
  return order;
}

}  // namespace dynosim::search
