// SPDX-License-Identifier: Apache-2.0
// Samples as the reference writes them.
#include "report/telemetry.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "base/json.h"
#include "report/sample_outcome.h"
#include "sim/outcome.h"

namespace dynosim::report {
namespace {

TEST(Telemetry, ASampleIsTheReferencesText) {
  sim::TelemetrySample sample;
  sample.ordinal = 7;
  sample.kind = sim::TelemetrySample::Kind::kPeriodic;
  sample.interval_start_ms = 90.0;
  sample.sampled_at_ms = 105.0;
  sample.duration_s = 0.015;
  sample.completed_requests = 2;
  sample.avg_isl = 256.0;
  sample.avg_osl = 6.0;
  sample.avg_ttft_ms = 10.0;
  sample.avg_itl_ms = 5.0;
  sample.ttft_count = 2;
  sample.itl_count = 2;
  sample.avg_accept_length = 1.0;
  sample.accept_length_forward_count = 6;
  sample.decode_schedulers = {{.worker = 0, .inactive_blocks = 12, .total_blocks = 16384}};
  sample.active_decode_ids = {0, 1};
  EXPECT_EQ(
      SampleText(sample),
      R"({"sample_ordinal":7,"kind":"periodic","interval_start_ms":90.0,"sampled_at_ms":105.0,)"
      R"("traffic":{"duration_s":0.015,"arriving_requests":0,"completed_requests":2,)"
      R"("avg_isl":256.0,"avg_osl":6.0,"avg_ttft_ms":10.0,"avg_itl_ms":5.0,"ttft_count":2,)"
      R"("itl_count":2,"avg_router_kv_hit_rate":0.0,"router_kv_hit_rate_count":0,)"
      R"("avg_accept_length":1.0,"accept_length_forward_count":6},"prefill_scheduler_metrics":[],)"
      R"("decode_scheduler_metrics":[{"worker_id":0,"dp_rank":0,"active_blocks":0,)"
      R"("inactive_blocks":12,"total_blocks":16384,"active_cache_usage":0.0,)"
      R"("physical_cache_usage":0.000732421875,"running_requests":0,"waiting_requests":0}],)"
      R"("prefill_interval_metrics":{"cache_hit_tokens":0,"cache_total_tokens":0,)"
      R"("preemptions":0},"decode_interval_metrics":{"cache_hit_tokens":0,)"
      R"("cache_total_tokens":0,"preemptions":0},"router_pending_prefill_requests":0,)"
      R"("router_pending_decode_requests":0,"active_prefill_ids":[],"active_decode_ids":[0,1],)"
      R"("starting_prefill_ids":[],"starting_decode_ids":[],"draining_prefill_ids":[],)"
      R"("draining_decode_ids":[]})");
}

TEST(Telemetry, WithoutDecodeForwardsTheAcceptLengthIsNull) {
  const auto sample = ParseJson(SampleText({}), "sample");
  ASSERT_TRUE(sample);
  EXPECT_TRUE(sample->Find("traffic")->Find("avg_accept_length")->is_null());
  EXPECT_EQ(sample->Find("kind")->string(), "baseline");
}

TEST(Telemetry, UsageCountsActiveAndCachedBlocks) {
  sim::TelemetrySample sample;
  sample.kind = sim::TelemetrySample::Kind::kFinal;
  sample.prefill_schedulers = {
      {.worker = 3, .dp_rank = 1, .active_blocks = 2, .inactive_blocks = 4, .total_blocks = 8},
      {.worker = 4}};
  const auto json = ParseJson(SampleText(sample), "sample");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->Find("kind")->string(), "final");
  const Json::Array& rows = json->Find("prefill_scheduler_metrics")->array();
  EXPECT_EQ(rows[0].Find("active_cache_usage")->number(), 0.25);
  EXPECT_EQ(rows[0].Find("physical_cache_usage")->number(), 0.75);
  EXPECT_EQ(rows[1].Find("active_cache_usage")->number(), 0.0);  // no pool, no division by zero
}

TEST(Telemetry, TheFileHasOneSampleALine) {
  sim::Outcome outcome;
  outcome.telemetry.resize(2);
  outcome.telemetry[1].ordinal = 1;
  const std::string path =
      (std::filesystem::path(::testing::TempDir()) / "telemetry_test.jsonl").string();
  const auto written = WriteTelemetryJsonl(path, outcome);
  ASSERT_TRUE(written) << written.error().Text();
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(text,
            SampleText(outcome.telemetry[0]) + "\n" + SampleText(outcome.telemetry[1]) + "\n");
}

}  // namespace
}  // namespace dynosim::report
