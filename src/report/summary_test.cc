// SPDX-License-Identifier: Apache-2.0
// Summaries of hand-made outcomes: who counts where, rates, goodput, order of keys.
#include "report/summary.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "report/sample_outcome.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "workload/request.h"

namespace dynosim::report {
namespace {

using workload::TerminalStatus;

Summary Of(const sim::Outcome& outcome, const scenario::Goodput& goodput = {}) {
  scenario::Scenario scenario;
  scenario.goodput = goodput;
  return Summarize(outcome, scenario, {.wall_time_ms = 4.0});
}

sim::Outcome TwoCompleted() {
  sim::Outcome outcome;
  outcome.records = {Completed(0, 0.0, {10.0, 12.0, 16.0}), Completed(1, 5.0, {20.0})};
  outcome.gaps = {{.gap_ms = 2.0, .weight = 1}, {.gap_ms = 4.0, .weight = 1}};
  return outcome;
}

TEST(Summary, LatenciesFollowTheirDefinitions) {
  const Summary summary = Of(TwoCompleted());
  EXPECT_EQ(summary.ttft_ms.samples, 2U);
  EXPECT_EQ(summary.ttft_ms.min, 10.0);
  EXPECT_EQ(summary.ttft_ms.max, 15.0);
  EXPECT_EQ(summary.ttst_ms.samples, 1U);
  EXPECT_EQ(summary.ttst_ms.max, 2.0);
  EXPECT_EQ(summary.tpot_ms.max, 3.0);
  EXPECT_EQ(summary.e2e_latency_ms.min, 15.0);
  EXPECT_EQ(summary.e2e_latency_ms.max, 16.0);
  EXPECT_EQ(summary.gaps.gap_ms.mean, 3.0);
  EXPECT_EQ(summary.gaps.tokens_per_second.max, 500.0);
}

TEST(Summary, RatesAreOverTheLastTerminalTime) {
  const Summary summary = Of(TwoCompleted());
  EXPECT_EQ(summary.duration_ms, 20.0);
  EXPECT_EQ(summary.request_throughput_rps, 100.0);
  EXPECT_EQ(summary.input_throughput_tok_s, 10'000.0);
  EXPECT_EQ(summary.output_throughput_tok_s, 200.0);
  EXPECT_EQ(summary.total_throughput_tok_s, 10'200.0);
}

TEST(Summary, ProcessedTokensAreOverRealTime) {
  const Summary summary = Of(TwoCompleted());
  EXPECT_EQ(summary.processed_tokens, 204U);
  EXPECT_EQ(summary.processed_tokens_per_s, 51'000.0);
  EXPECT_EQ(summary.processed_output_tokens_per_s, 1000.0);
  const Summary instant = Summarize(TwoCompleted(), {}, {.wall_time_ms = 0.0});
  EXPECT_EQ(instant.processed_tokens_per_s, 0.0);
}

TEST(Summary, RequestsWithoutTokensCountButGiveNoLatency) {
  sim::Outcome outcome;
  outcome.records = {Completed(0, 0.0, {}), Completed(1, 100.0, {110.0, 112.0, 114.0})};
  outcome.records[0].terminal_ms = 300.0;
  const Summary summary = Of(outcome);
  EXPECT_EQ(summary.completed_requests, 2U);
  EXPECT_EQ(summary.total_input_tokens, 200U);
  EXPECT_EQ(summary.duration_ms, 300.0);
  EXPECT_EQ(summary.ttft_ms.samples, 1U);
  EXPECT_EQ(summary.tpot_ms.samples, 1U);
  EXPECT_EQ(summary.e2e_latency_ms.samples, 1U);
}

TEST(Summary, CompletedRejectedAndUnfinishedAddUpToAllThatArrived) {
  sim::Outcome outcome;
  outcome.records = {Completed(0, 0.0, {10.0}), NotServed(1, 1.0, TerminalStatus::kRejected, 50.0),
                     NotServed(2, 2.0, TerminalStatus::kFailed, 60.0), Completed(3, 3.0, {12.0})};
  outcome.records[3].terminal = false;
  const Summary summary = Of(outcome);
  EXPECT_EQ(summary.num_requests, 4U);
  EXPECT_EQ(summary.completed_requests, 1U);
  EXPECT_EQ(summary.rejected_requests, 2U);
  EXPECT_EQ(summary.total_input_tokens, 100U);
  EXPECT_EQ(summary.duration_ms, 10.0);
}

TEST(Summary, CanceledRequestsAreNeitherCompletedNorRejected) {
  sim::Outcome outcome;
  outcome.records = {NotServed(0, 0.0, TerminalStatus::kCanceled, 3.0)};
  EXPECT_EQ(Of(outcome).rejected_requests, 0U);
  EXPECT_EQ(Of(outcome).completed_requests, 0U);
}

TEST(Summary, NothingCompletedGivesZerosNotNulls) {
  sim::Outcome outcome;
  outcome.records = {NotServed(0, 0.0, TerminalStatus::kRejected, 10.0)};
  const Json json = SummaryJson(Of(outcome));
  EXPECT_EQ(json.Find("num_requests")->number(), 1.0);
  for (const std::string_view key : {"duration_ms", "mean_ttft_ms", "p99_itl_ms",
                                     "std_e2e_latency_ms", "max_output_token_throughput_per_user",
                                     "request_throughput_rps", "prefix_cache_reused_ratio"}) {
    ASSERT_NE(json.Find(key), nullptr) << key;
    ASSERT_TRUE(json.Find(key)->is_double()) << key;
    EXPECT_EQ(json.Find(key)->number(), 0.0) << key;
  }
}

TEST(Summary, RatesOfARunWithoutDurationStayFinite) {
  sim::Outcome outcome;
  outcome.records = {Completed(0, 0.0, {0.0, 0.0, 0.0}, 64)};
  outcome.zero_gaps = 2;
  const Summary summary = Of(outcome);
  EXPECT_DOUBLE_EQ(summary.request_throughput_rps, 1e9);
  EXPECT_EQ(summary.gaps.gap_ms.samples, 2U);
  EXPECT_EQ(summary.gaps.tokens_per_second.samples, 0U);
}

TEST(Summary, CacheRatiosDivideByTheInputOfCompletedRequests) {
  sim::Outcome outcome;
  outcome.records = {Completed(0, 0.0, {10.0}), Completed(1, 0.0, {10.0}),
                     NotServed(2, 0.0, TerminalStatus::kRejected, 1.0)};
  outcome.records[0].reused_tokens_max = 60;
  outcome.records[0].reused_tokens_first = 20;
  outcome.records[0].readmission_reused_tokens = 60;
  outcome.records[2].reused_tokens_max = 1000;
  const Summary summary = Of(outcome);
  EXPECT_EQ(summary.prefix_cache_reused_ratio, 0.3);
  EXPECT_EQ(summary.first_admission_prefix_cache_reused_ratio, 0.1);
  EXPECT_EQ(summary.readmission_reused_tokens, 60U);
}

TEST(Summary, GpuHoursWeighBothRoles) {
  sim::Outcome outcome;
  outcome.prefill_worker_seconds = 1800.0;
  outcome.prefill_gpus_per_worker = 2;
  outcome.decode_worker_seconds = 3600.0;
  outcome.decode_gpus_per_worker = 4;
  EXPECT_EQ(Of(outcome).gpu_hours, 5.0);
}

TEST(Goodput, IsAbsentWithoutBounds) {
  EXPECT_FALSE(Of(TwoCompleted()).goodput.has_value());
  EXPECT_EQ(SummaryJson(Of(TwoCompleted())).Find("goodput_completed_requests"), nullptr);
}

TEST(Goodput, ARequestMustMeetEveryBoundAndEqualityIsEnough) {
  EXPECT_EQ(
      Of(TwoCompleted(), {.ttft_ms = 10.0, .itl_ms = {}, .e2e_ms = {}}).goodput->completed_requests,
      1U);
  EXPECT_EQ(
      Of(TwoCompleted(), {.ttft_ms = 9.9, .itl_ms = {}, .e2e_ms = {}}).goodput->completed_requests,
      0U);
  EXPECT_EQ(Of(TwoCompleted(), {.ttft_ms = 15.0, .itl_ms = 2.9, .e2e_ms = {}})
                .goodput->completed_requests,
            1U);  // the second has one token, so no gap
  EXPECT_EQ(
      Of(TwoCompleted(), {.ttft_ms = {}, .itl_ms = 3.0, .e2e_ms = {}}).goodput->completed_requests,
      2U);
  EXPECT_EQ(
      Of(TwoCompleted(), {.ttft_ms = {}, .itl_ms = {}, .e2e_ms = 15.5}).goodput->completed_requests,
      1U);
}

TEST(Goodput, RatesCountGoodRequestsAndTheirTokens) {
  const Summary summary = Of(TwoCompleted(), {.ttft_ms = 10.0, .itl_ms = {}, .e2e_ms = {}});
  EXPECT_EQ(summary.goodput->request_throughput_rps, 50.0);
  EXPECT_EQ(summary.goodput->output_throughput_tok_s, 150.0);
}

TEST(Goodput, ATokenlessRequestIsGoodOnlyUnderAnEndToEndBoundAlone) {
  sim::Outcome outcome;
  outcome.records = {Completed(0, 0.0, {})};
  outcome.records[0].terminal_ms = 10.0;
  EXPECT_EQ(Of(outcome, {.ttft_ms = {}, .itl_ms = {}, .e2e_ms = 10.0}).goodput->completed_requests,
            1U);
  EXPECT_EQ(Of(outcome, {.ttft_ms = {}, .itl_ms = {}, .e2e_ms = 9.0}).goodput->completed_requests,
            0U);
  EXPECT_EQ(Of(outcome, {.ttft_ms = 50.0, .itl_ms = {}, .e2e_ms = {}}).goodput->completed_requests,
            0U);
}

TEST(SummaryJson, KeysAreInTheOrderOfTheSpecification) {
  const Json json = SummaryJson(Of(TwoCompleted(), {.ttft_ms = 1.0, .itl_ms = {}, .e2e_ms = {}}));
  std::vector<std::string> keys;
  for (const Json::Member& member : json.object()) {
    keys.push_back(member.first);
  }
  const std::vector<std::string> head = {"kv_eviction_policy",
                                         "committed_prefill_tokens",
                                         "num_requests",
                                         "completed_requests",
                                         "rejected_requests",
                                         "total_input_tokens",
                                         "total_output_tokens",
                                         "duration_ms",
                                         "wall_time_ms",
                                         "request_throughput_rps",
                                         "input_throughput_tok_s",
                                         "output_throughput_tok_s",
                                         "total_throughput_tok_s",
                                         "prefill_worker_seconds",
                                         "decode_worker_seconds",
                                         "prefill_gpus_per_worker",
                                         "decode_gpus_per_worker",
                                         "gpu_hours",
                                         "goodput_completed_requests",
                                         "goodput_request_throughput_rps",
                                         "goodput_output_throughput_tok_s",
                                         "power_w",
                                         "power_coverage",
                                         "processed_tokens",
                                         "processed_tokens_per_s",
                                         "processed_output_tokens_per_s",
                                         "prefix_cache_reused_ratio",
                                         "first_admission_prefix_cache_reused_ratio",
                                         "readmission_reused_tokens",
                                         "num_ttft_samples",
                                         "num_tpot_samples",
                                         "num_e2e_latency_samples",
                                         "mean_ttft_ms",
                                         "min_ttft_ms",
                                         "max_ttft_ms",
                                         "median_ttft_ms",
                                         "p75_ttft_ms",
                                         "p90_ttft_ms",
                                         "p95_ttft_ms",
                                         "p99_ttft_ms",
                                         "std_ttft_ms",
                                         "mean_ttst_ms"};
  ASSERT_GT(keys.size(), head.size());
  EXPECT_EQ(std::vector<std::string>(keys.begin(), keys.begin() + static_cast<long>(head.size())),
            head);
  EXPECT_EQ(keys.size(), 32U + 6U * 9U + 2U);
  EXPECT_EQ(keys[keys.size() - 3], "std_output_token_throughput_per_user");
  EXPECT_EQ(keys[keys.size() - 2], "itl_percentile_method");
  EXPECT_EQ(keys.back(), "runtime");
  EXPECT_TRUE(json.Find("power_w")->is_null());
  EXPECT_EQ(json.Find("kv_eviction_policy")->string(), "lru");
  EXPECT_EQ(json.Find("itl_percentile_method")->string(), "exact");
}

TEST(SummaryJson, RuntimeRepeatsTheWallClockFieldsAndNothingElseVaries) {
  Json first = SummaryJson(Summarize(TwoCompleted(), {}, {.wall_time_ms = 4.0}));
  Json second = SummaryJson(Summarize(TwoCompleted(), {}, {.wall_time_ms = 9.0}));
  EXPECT_EQ(DumpJson(*first.Find("runtime")),
            R"({"wall_time_ms":4.0,"processed_tokens_per_s":51000.0,)"
            R"("processed_output_tokens_per_s":1000.0})");
  for (Json* json : {&first, &second}) {
    std::erase_if(json->object(), [](const Json::Member& member) {
      return member.first == "runtime" || member.first == "wall_time_ms" ||
             member.first == "processed_tokens_per_s" ||
             member.first == "processed_output_tokens_per_s";
    });
  }
  EXPECT_EQ(DumpJson(first), DumpJson(second));
}

}  // namespace
}  // namespace dynosim::report
