// SPDX-License-Identifier: Apache-2.0
// Latency numbers that users of serving systems found wrong, kind by kind. A pass ends 10 ms later
// if it computes prompts, plus 2 ms if it decodes; tokens appear at its end.
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "field_replay.h"
#include "scenario/replay_flags.h"

namespace dynosim::testing {
namespace {

using Strings = std::vector<std::string>;

const Strings kPaged = {"vllm", "trtllm"};
const Strings kAll = {"vllm", "trtllm", "sglang"};

constexpr const char* kTtft = "ttft_ms";
constexpr const char* kEnd = "terminal_time_ms";
constexpr const char* kArrival = "arrival_time_ms";

bool IsStatistic(std::string_view key) {
  for (const std::string_view start :
       {"mean_", "min_", "max_", "median_", "p75_", "p90_", "p95_", "p99_", "std_", "goodput_",
        "request_throughput", "input_throughput", "output_throughput", "total_"}) {
    if (key.starts_with(start)) {
      return true;
    }
  }
  return false;
}

// Every statistic of a run without a completed request is present and zero.
void ExpectNothingCompleted(const FieldResult& result) {
  ASSERT_EQ(result.error, "");
  EXPECT_EQ(result.Of("num_requests"), "1");
  EXPECT_EQ(result.Of("completed_requests"), "0");
  EXPECT_EQ(result.Of("duration_ms"), "0");
  EXPECT_EQ(result.Of("prefix_cache_reused_ratio"), "0");
  int statistics = 0;
  for (const auto& [key, value] : result.report.object()) {
    if (IsStatistic(key)) {
      ++statistics;
      ASSERT_TRUE(value.is_number()) << key;
      EXPECT_EQ(value.number(), 0.0) << key;
    }
  }
  EXPECT_EQ(statistics, 60);
}

TEST(LatencyReports, OutputsOfNoneAndOneGiveNoPhantomSamples) {
  ExpectResults({{.what = "none",
                  .replay = {.rows = {"0/64/0[1]", "100/64/3[2]"}},
                  .expected = {{"completed_requests", "2"},
                               {"num_ttft_samples", "1"},
                               {"num_tpot_samples", "1"},
                               {"first_token_ms", "null 110"},
                               {"last_token_ms", "null 114"},
                               {kEnd, "10 114"}}},
                 {.what = "one each",
                  .replay = {.rows = {"0/64/1[1]", "5/64/1[2]"}},
                  .expected = {{"num_ttft_samples", "2"},
                               {"num_tpot_samples", "0"},
                               {"mean_itl_ms", "0"},
                               {"mean_tpot_ms", "0"},
                               {"itl_ms", "null null"},
                               {kEnd, "10 20"}}},
                 {.what = "two, one and none in one pass",
                  .replay = {.rows = {"0/64/2[1]", "0/64/1[2]", "0/64/0[3]"}},
                  .expected = {{"total_output_tokens", "3"},
                               {"num_ttft_samples", "2"},
                               {"num_e2e_latency_samples", "2"},
                               {"num_tpot_samples", "1"},
                               {"min_itl_ms", "2"},
                               {"itl_ms", "2 null null"},
                               {kEnd, "12 10 10"}}}},
                kAll);
}

TEST(LatencyReports, SyntheticTrafficNeedsAnOutputToken) {
  scenario::ReplayFlags flags;
  flags.input_tokens = "64";
  flags.output_tokens = "0";
  flags.request_count = "1";
  flags.replay_concurrency = "1";
  EXPECT_EQ(Replayed(flags).error, "--output-tokens: must be between 1 and 281474976710656, got 0");
  flags.output_tokens = "1";
  EXPECT_EQ(Replayed(flags).Of("completed_requests"), "1");
}

TEST(LatencyReports, PercentilesAreNearestRanksAndDeviationsArePopulationOnes) {
  const std::string engine = R"("max_num_seqs":1)";
  ExpectResults(
      {{.what = "10 20 30 40: rank 1.5 is rank 2",
        .replay = {.rows = {"0/64/1[1]", "0/64/1[2]", "0/64/1[3]", "0/64/1[4]"}, .engine = engine},
        .expected = {{kTtft, "10 20 30 40"},
                     {"mean_ttft_ms", "25"},
                     {"median_ttft_ms", "30"},
                     {"p75_ttft_ms", "30"},
                     {"p90_ttft_ms", "40"},
                     {"std_ttft_ms", "11.180339887498949"}}},
       {.what = "10 20 30 40 50: rank 3.6 is rank 4",
        .replay = {.rows = {"0/64/1[1]", "0/64/1[2]", "0/64/1[3]", "0/64/1[4]", "0/64/1[5]"},
                   .engine = engine},
        .expected = {{"median_ttft_ms", "30"},
                     {"p75_ttft_ms", "40"},
                     {"p90_ttft_ms", "50"},
                     {"std_ttft_ms", "14.142135623730951"}}},
       {.what = "10 20: rank 0.5 is rank 1",
        .replay = {.rows = {"0/64/1[1]", "0/64/1[2]"}, .engine = engine},
        .expected = {{"median_ttft_ms", "20"}, {"std_ttft_ms", "5"}}}},
      kAll);
}

TEST(LatencyReports, PooledGapsStayBetweenTheirExtremes) {
  ExpectResults({{.what = "all gaps are 2",
                  .replay = {.rows = {"0/64/5[1]", "100/64/5[2]"}},
                  .expected = {{"min_itl_ms", "2"},
                               {"median_itl_ms", "2"},
                               {"p99_itl_ms", "2"},
                               {"max_itl_ms", "2"},
                               {"std_itl_ms", "0"},
                               {"median_output_token_throughput_per_user", "500"},
                               {"max_output_token_throughput_per_user", "500"}}}},
                kAll);
  // The second prompt is computed between the tokens of the first: gaps of 2 and 12.
  ExpectResults({{.what = "a gap holds the prefill of another request",
                  .replay = {.rows = {"0/64/3[1]", "11/64/1[2]"}},
                  .expected = {{"itl_ms", "7 null"},
                               {"mean_itl_ms", "7"},
                               {"median_itl_ms", "12"},
                               {"min_itl_ms", "2"},
                               {"max_itl_ms", "12"},
                               {"std_itl_ms", "5"},
                               {"max_output_token_throughput_per_user", "500"}}}},
                kPaged);
}

TEST(LatencyReports, TheFirstTokenComesFromTheDecodePoolAndWaitsForOneTransfer) {
  const Strings rows = {"0/192/4[1 2 3]", "50/192/1[1 2 4]", "100/192/4[1 2 3]"};
  ExpectResults(
      {{.what = "at once: prefill 10 and one decode pass 2",
        .replay = {.rows = rows, .disaggregated = true},
        .expected = {{kTtft, "12 12 12"},
                     {kEnd, "18 62 118"},
                     {"reused_input_tokens", "0 128 128"}}},
       {.what = "192 tokens of 1000 bytes at a megabyte a second",
        .replay = {.rows = rows,
                   .engine = R"("kv_transfer_bytes_per_token":1000,"kv_transfer_bandwidth":0.001)",
                   .disaggregated = true},
        .expected = {{kTtft, "204 204 204"}, {kEnd, "210 254 310"}}},
       {.what = "twice as fast",
        .replay = {.rows = rows,
                   .engine = R"("kv_transfer_bytes_per_token":1000,"kv_transfer_bandwidth":0.002)",
                   .disaggregated = true},
        .expected = {{kTtft, "108 108 108"}}},
       {.what = "only the blocks that the decode worker lacks: three, one, none",
        .replay = {.rows = {"0/192/4[1 2 3]", "1000/192/1[1 2 4]", "2000/192/4[1 2 3]"},
                   .engine = R"("kv_transfer_bytes_per_token":1000,"kv_transfer_bandwidth":0.001,)"
                             R"("kv_transfer_timing_mode":"destination_missing")",
                   .disaggregated = true},
        .expected = {{kTtft, "204 76 12"}}}});
}

TEST(LatencyReports, WaitingForAConcurrencySlotIsNoLatency) {
  const Strings sessions = {
      R"({"session_id":"a","input_length":64,"output_length":2,"hash_ids":[1]})",
      R"({"session_id":"b","input_length":64,"output_length":2,"hash_ids":[2]})",
      R"({"session_id":"a","delay":10,"input_length":128,"output_length":2,"hash_ids":[1,5]})"};
  ExpectResults({{.what = "a session keeps its slot while its client thinks",
                  .replay = {.rows = sessions, .concurrency = "1"},
                  .expected = {{kArrival, "0 22 34"},
                               {"session_id", "a a b"},
                               {"turn_index", "0 1 0"},
                               {kTtft, "10 10 10"},
                               {kEnd, "12 34 46"}}},
                 {.what = "two slots",
                  .replay = {.rows = sessions, .concurrency = "2"},
                  .expected = {{kArrival, "0 0 22"},
                               {"session_id", "a b a"},
                               {kTtft, "10 10 10"},
                               {kEnd, "12 12 34"}}},
                 {.what = "times of the trace play no role",
                  .replay = {.rows = {"0/64/2[1]", "5/64/2[2]", "900/64/2[3]"}, .concurrency = "1"},
                  .expected = {{kArrival, "0 12 24"}, {kTtft, "10 10 10"}}}},
                kAll);
}

TEST(LatencyReports, ARunThatCompletesNothingReportsZeros) {
  const FieldResult rejected =
      Replayed({.rows = {"0/640/3[0..9]"}, .engine = R"("num_gpu_blocks":4)"});
  ExpectNothingCompleted(rejected);
  EXPECT_EQ(rejected.Of("rejected_requests"), "1");
  EXPECT_EQ(rejected.Of("terminal_status"), "rejected");
  EXPECT_EQ(rejected.Of("rejection_reason"), "the prompt needs 10 KV blocks; the rank has 4");
  EXPECT_EQ(rejected.Of("ttft_ms"), "null");
  const FieldResult cut = Replayed({.rows = {"0/64/3[1]"}, .max_sim_time_ms = "5"});
  ExpectNothingCompleted(cut);
  EXPECT_EQ(cut.Of("rejected_requests"), "0");
  EXPECT_EQ(cut.Of("terminal_status"), "");
}

TEST(LatencyReports, RunsThatTakeNoTimeHaveFiniteRates) {
  // The report was parsed as strict JSON, where infinities and NaN do not exist.
  const std::string no_time = R"("timing_model":{"type":"fixed","prefill_ms":0,"decode_ms":0})";
  ExpectResults({{.what = "rates are per nanosecond then",
                  .replay = {.rows = {"0/64/3[1]"}, .engine = no_time},
                  .expected = {{"duration_ms", "0"},
                               {"request_throughput_rps", "999999999.9999999"},
                               {"output_throughput_tok_s", "3000000000"},
                               {"mean_itl_ms", "0"},
                               {"max_output_token_throughput_per_user", "0"}}},
                 {.what = "with arrivals apart time passes",
                  .replay = {.rows = {"0/64/3[1]", "500/64/3[2]"}, .engine = no_time},
                  .expected = {{"duration_ms", "500"}, {"request_throughput_rps", "4"}}}},
                kAll);
}

}  // namespace
}  // namespace dynosim::testing
