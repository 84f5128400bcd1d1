// SPDX-License-Identifier: Apache-2.0
#include "search/ranking.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "search/candidate.h"
#include "search/settings.h"

namespace dynosim::search {
namespace {

// A feasible deployment of its own.
CandidateResult Feasible(double score, std::uint64_t gpus, double per_gpu = 0,
                         double per_user = 0) {
  static std::uint64_t number = 0;
  CandidateResult result;
  result.status = Status::kFeasible;
  result.used_gpus = gpus;
  result.score = score;
  result.objectives = {{"throughput_per_gpu", per_gpu}, {"throughput_per_user", per_user}};
  result.prediction_config.Add("number", ++number);
  return result;
}

using Order = std::vector<std::size_t>;

TEST(Ranking, TiesGoToFewerGpusAndThenToTheEarlier) {
  const std::vector<CandidateResult> results = {Feasible(1, 1), Feasible(2, 4), Feasible(2, 2),
                                                Feasible(2, 2)};
  EXPECT_EQ(Rank(results, Target::kThroughput), (Order{2, 3, 1, 0}));
}

TEST(Ranking, LeavesOutInfeasibleAndEqualDeployments) {
  std::vector<CandidateResult> results = {Feasible(1, 1), Feasible(5, 1), Feasible(1, 1)};
  results[1].status = Status::kInfeasible;
  results[2].prediction_config = results[0].prediction_config;
  EXPECT_EQ(Rank(results, Target::kThroughput), (Order{0}));
}

TEST(Ranking, ParetoKeepsWhatNoOtherBeatsSlowestUserFirst) {
  const std::vector<CandidateResult> results = {Feasible(10, 1, 10, 5), Feasible(20, 1, 20, 1),
                                                Feasible(9, 1, 9, 5), Feasible(5, 1, 5, 9),
                                                Feasible(10, 2, 10, 5)};
  EXPECT_EQ(ParetoFront(results), (Order{0, 1, 3, 4}));
  EXPECT_EQ(Rank(results, Target::kPareto), (Order{1, 0, 4, 3}));
}

TEST(CandidateResult, ReadsBackFromItsJson) {
  CandidateResult result = Feasible(-4.25, 2, 0.1, 1e300);
  result.metrics.Add("mean_ttft_ms", 1.0 / 3.0);
  const auto again =
      CandidateResult::FromJson(*ParseJson(DumpJson(result.ToJson()), "text"), "text");
  ASSERT_TRUE(again) << again.error().Text();
  EXPECT_EQ(DumpJson(again->ToJson()), DumpJson(result.ToJson()));
  EXPECT_EQ(again->objectives, result.objectives);
}

}  // namespace
}  // namespace dynosim::search
