// SPDX-License-Identifier: Apache-2.0
// Flags of `replay`: rules between flags in their order, values, and what is refused by name.
#include "scenario/replay_flags.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "engine/settings.h"
#include "scenario/scenario.h"
#include "workload/spec.h"

namespace dynosim::scenario {
namespace {

using Change = std::function<void(ReplayFlags&)>;

ReplayFlags Trace() {
  ReplayFlags flags;
  flags.trace_files = {"t.jsonl"};
  return flags;
}
ReplayFlags Synthetic() {
  ReplayFlags flags;
  flags.input_tokens = "100";
  flags.output_tokens = "10";
  flags.request_count = "5";
  flags.replay_concurrency = "2";
  return flags;
}
std::string ErrorOf(ReplayFlags flags, const Change& change = [](ReplayFlags&) {}) {
  change(flags);
  const auto built = BuildReplay(flags);
  return built ? "built" : built.error().Text();
}

TEST(ReplayFlags, ATraceAloneHasTheDocumentedDefaults) {
  const auto built = BuildReplay(Trace());
  ASSERT_TRUE(built) << built.error().Text();
  const Scenario& s = built->scenario;
  ASSERT_TRUE(s.workload.trace);
  EXPECT_FALSE(s.workload.synthetic);
  EXPECT_EQ(s.workload.trace->files, std::vector<std::string>{"t.jsonl"});
  EXPECT_EQ(s.workload.trace->format, "mooncake");
  EXPECT_EQ(s.workload.trace->block_size, std::nullopt);
  EXPECT_EQ(s.workload.replay_concurrency, std::nullopt);
  EXPECT_EQ(s.workload.arrival_speedup_ratio, 1.0);
  EXPECT_EQ(s.num_workers, 1U);
  EXPECT_EQ(s.engine.backend, engine::Backend::kVllm);
  EXPECT_EQ(s.max_sim_time_ms, std::nullopt);
  EXPECT_FALSE(s.capture_per_request);
  EXPECT_FALSE(s.telemetry.enabled());
  EXPECT_EQ(s.telemetry.sample_interval_ms, 1000.0);
  EXPECT_FALSE(s.goodput.any());
  EXPECT_FALSE(s.pass_by_pass);
  EXPECT_EQ(built->report_json, "");
}

TEST(ReplayFlags, EveryValueReachesTheScenario) {
  ReplayFlags f = Trace();
  f.trace_format = "mooncake-delta";
  f.trace_block_size = "64";
  f.replay_concurrency = "7";
  f.arrival_speedup_ratio = "2.5";
  f.num_workers = "3";
  f.extra_engine_args = R"({"engine":{"backend":"trtllm"}})";
  f.max_sim_time_seconds = "0.065";
  f.sla_ttft_ms = "10";
  f.sla_itl_ms = "2.5";
  f.report_json = "a.json";
  f.report_jsonl = "b.jsonl";
  f.telemetry_jsonl = "c.jsonl";
  f.telemetry_sample_interval_ms = "33.3";
  f.capture_telemetry = true;
  f.pass_by_pass = true;
  f.replay_mode = "offline";
  f.router_mode = "round_robin";
  const auto built = BuildReplay(f);
  ASSERT_TRUE(built) << built.error().Text();
  const Scenario& s = built->scenario;
  EXPECT_EQ(s.workload.trace->format, "mooncake-delta");
  EXPECT_EQ(s.workload.trace->block_size, 64);
  EXPECT_EQ(s.workload.replay_concurrency, 7);
  EXPECT_EQ(s.workload.arrival_speedup_ratio, 2.5);
  EXPECT_EQ(s.num_workers, 3U);
  EXPECT_EQ(s.engine.backend, engine::Backend::kTrtllm);
  EXPECT_EQ(s.max_sim_time_ms, 0.065 * 1000.0);
  EXPECT_EQ(s.goodput.ttft_ms, 10.0);
  EXPECT_EQ(s.goodput.itl_ms, 2.5);
  EXPECT_EQ(built->report_json, "a.json");
  EXPECT_EQ(built->report_jsonl, "b.jsonl");
  EXPECT_TRUE(s.capture_per_request);  // rows are needed for the file
  EXPECT_EQ(s.telemetry.jsonl_path, "c.jsonl");
  EXPECT_EQ(s.telemetry.sample_interval_ms, 33.3);
  EXPECT_TRUE(s.telemetry.capture);
  EXPECT_TRUE(s.pass_by_pass);
}

TEST(ReplayFlags, SyntheticValuesReachTheScenario) {
  ReplayFlags f = Synthetic();
  f.replay_concurrency.reset();
  f.request_rate = "12.5";
  f.arrival_seed = "18446744073709551615";
  f.turns_per_session = "3";
  f.shared_prefix_ratio = "0.5";
  f.num_prefix_groups = "2";
  f.inter_turn_delay_ms = "40";
  f.session_prompts = "cumulative";
  const auto built = BuildReplay(f);
  ASSERT_TRUE(built) << built.error().Text();
  ASSERT_TRUE(built->scenario.workload.synthetic);
  const workload::SyntheticSpec& s = *built->scenario.workload.synthetic;
  EXPECT_EQ(s.input_tokens, 100);
  EXPECT_EQ(s.output_tokens, 10);
  EXPECT_EQ(s.request_count, 5);
  EXPECT_EQ(s.request_rate, 12.5);
  EXPECT_EQ(s.arrival_interval_ms, std::nullopt);
  EXPECT_EQ(s.arrival_seed, 18446744073709551615U);
  EXPECT_EQ(s.turns_per_session, 3);
  EXPECT_EQ(s.shared_prefix_ratio, 0.5);
  EXPECT_EQ(s.num_prefix_groups, 2);
  EXPECT_EQ(s.inter_turn_delay_ms, 40.0);
  EXPECT_EQ(s.session_prompts, workload::SessionPrompts::kCumulative);
}

TEST(ReplayFlags, RulesBetweenFlags) {
  const std::pair<Change, std::string_view> cases[] = {
      {[](ReplayFlags& f) {
         f = {};
         f.trace_format = "dynamo";
       },
       "--trace-format=dynamo requires at least one trace file"},
      {[](ReplayFlags& f) { f.trace_files.emplace_back("u"); },
       "--trace-format=mooncake requires exactly one trace file, got 2"},
      {[](ReplayFlags& f) { f = {}; },
       "provide either a trace file or all of --input-tokens, --output-tokens, --request-count"},
      {[](ReplayFlags& f) { f.input_tokens = "5"; },
       "provide either a trace file or all of --input-tokens, --output-tokens, --request-count"},
      {[](ReplayFlags& f) { f.turns_per_session = "2"; },
       "provide either a trace file or all of --input-tokens, --output-tokens, --request-count"},
      {[](ReplayFlags& f) {
         f = Synthetic();
         f.output_tokens.reset();
       },
       "a synthetic replay requires --input-tokens, --output-tokens and --request-count"},
      {[](ReplayFlags& f) {
         f = {};
         f.inter_turn_delay_ms = "5";
       },
       "a synthetic replay requires --input-tokens, --output-tokens and --request-count"},
      {[](ReplayFlags& f) {
         f = Synthetic();
         f.replay_concurrency.reset();
       },
       "a synthetic replay requires exactly one of --replay-concurrency, --request-rate, "
       "--arrival-interval-ms"},
      {[](ReplayFlags& f) {
         f = Synthetic();
         f.request_rate = "1";
       },
       "a synthetic replay requires exactly one of --replay-concurrency, --request-rate, "
       "--arrival-interval-ms"},
      {[](ReplayFlags& f) { f.request_rate = "1"; },
       "--request-rate and --arrival-interval-ms only apply to a synthetic replay"},
      {[](ReplayFlags& f) { f.arrival_seed = "1"; },
       "--arrival-seed: only applies to a synthetic replay"},
      {[](ReplayFlags& f) { f.session_prompts = "fixed"; },
       "--session-prompts: only applies to a synthetic replay"},
      {[](ReplayFlags& f) { f.trace_format = "applied_compute_agentic"; },
       "--trace-format=applied_compute_agentic requires --replay-concurrency: its traces have no "
       "first-turn timestamps"},
      {[](ReplayFlags& f) {
         f = Synthetic();
         f.report_jsonl = "x";
       },
       "--report-jsonl: only applies to the replay of a trace file"},
      {[](ReplayFlags& f) {
         f = Synthetic();
         f.max_sim_time_seconds = "1";
       },
       "--max-sim-time-seconds: only applies to the replay of a trace file"},
      {[](ReplayFlags& f) {
         f = Synthetic();
         f.max_sim_time_ms = "1";
       },
       "--max-sim-time-ms: only applies to the replay of a trace file"},
      {[](ReplayFlags& f) {
         f = Synthetic();
         f.trace_block_size = "64";
       },
       "--trace-block-size: only applies to the replay of a trace file"},
      {[](ReplayFlags& f) {
         f.max_sim_time_ms = "1";
         f.max_sim_time_seconds = "1";
       },
       "--max-sim-time-seconds and --max-sim-time-ms cannot be combined"},
      {[](ReplayFlags& f) {
         f.sla_e2e_ms = "5";
         f.sla_itl_ms = "5";
       },
       "--sla-e2e-ms: cannot be combined with --sla-ttft-ms or --sla-itl-ms"},
  };
  for (const auto& [change, message] : cases) {
    EXPECT_EQ(ErrorOf(Trace(), change), message);
  }
}

// Values that equal the defaults do not make a trace replay synthetic.
TEST(ReplayFlags, DefaultValuesOfSyntheticFlagsAreNoSyntheticTraffic) {
  EXPECT_EQ(ErrorOf(Trace(),
                    [](ReplayFlags& f) {
                      f.turns_per_session = "1";
                      f.shared_prefix_ratio = "0";
                      f.num_prefix_groups = "0";
                      f.inter_turn_delay_ms = "0.0";
                    }),
            "built");
}

TEST(ReplayFlags, ValuesAreChecked) {
  const std::pair<Change, std::string_view> trace_cases[] = {
      {[](ReplayFlags& f) { f.num_workers = "0"; },
       "--num-workers: must be an integer from 1 to 65536, got \"0\""},
      {[](ReplayFlags& f) { f.num_workers = "2.0"; },
       "--num-workers: must be an integer from 1 to 65536, got \"2.0\""},
      {[](ReplayFlags& f) { f.num_workers = " 2"; },
       "--num-workers: must be an integer from 1 to 65536, got \" 2\""},
      {[](ReplayFlags& f) { f.num_workers = "99999999999999999999"; },
       "--num-workers: must be an integer from 1 to 65536, got \"99999999999999999999\""},
      {[](ReplayFlags& f) {
         f.num_workers = "65536";
         f.extra_engine_args = R"({"dp_size":64})";
       },
       "--num-workers: times dp_size must be at most 1000000 ranks, got 65536 workers of 64"},
      {[](ReplayFlags& f) { f.trace_block_size = "0"; },
       "--trace-block-size: must be an integer >= 1, got \"0\""},
      {[](ReplayFlags& f) { f.replay_concurrency = "-1"; },
       "--replay-concurrency: must be an integer >= 1, got \"-1\""},
      {[](ReplayFlags& f) { f.arrival_speedup_ratio = "fast"; },
       "--arrival-speedup-ratio: must be a finite number, got \"fast\""},
      {[](ReplayFlags& f) { f.max_sim_time_ms = "-1"; },
       "--max-sim-time-ms: must be a finite number >= 0, got \"-1\""},
      {[](ReplayFlags& f) { f.max_sim_time_ms = "nan"; },
       "--max-sim-time-ms: must be a finite number >= 0, got \"nan\""},
      {[](ReplayFlags& f) { f.sla_ttft_ms = "0"; },
       "--sla-ttft-ms: must be a finite number > 0, got \"0\""},
      {[](ReplayFlags& f) { f.report_json = ""; }, "--report-json: must not be empty"},
      {[](ReplayFlags& f) {
         f.capture_telemetry = true;
         f.telemetry_sample_interval_ms = "0";
       },
       "--telemetry-sample-interval-ms: must be a finite number > 0, got \"0\""},
      {[](ReplayFlags& f) { f.replay_mode = "slow"; },
       "--replay-mode: must be offline or online, got 'slow'"},
      {[](ReplayFlags& f) { f.router_mode = "best"; },
       "--router-mode: must be round_robin, kv_router, random, least_loaded or power_of_two, got "
       "'best'"},
      {[](ReplayFlags& f) { f.extra_engine_args = "{"; },
       "--extra-engine-args: line 1, column 1: syntax error while parsing object key - unexpected "
       "end of input; expected string literal"},
      {[](ReplayFlags& f) { f.extra_engine_args = "[]"; },
       "--extra-engine-args: must be an object, got an array"},
      {[](ReplayFlags& f) { f.extra_engine_args = R"({"engine":{"block_size":1}})"; },
       "--extra-engine-args: engine.block_size: must be at least 2 with backend vllm or trtllm, "
       "got 1"},
      {[](ReplayFlags& f) { f.extra_engine_args = R"({"worker_type":"decode"})"; },
       "--extra-engine-args: worker_type must be aggregated for aggregated workers, got decode"},
  };
  for (const auto& [change, message] : trace_cases) {
    EXPECT_EQ(ErrorOf(Trace(), change), message);
  }
  const std::pair<Change, std::string_view> synthetic_cases[] = {
      {[](ReplayFlags& f) { f.input_tokens = "ten"; },
       "--input-tokens: must be an integer, got \"ten\""},
      {[](ReplayFlags& f) { f.arrival_seed = "-1"; },
       "--arrival-seed: must be an integer >= 0, got \"-1\""},
      {[](ReplayFlags& f) {
         f.replay_concurrency.reset();
         f.request_rate = "0";
       },
       "--request-rate: must be a finite number > 0, got \"0\""},
      {[](ReplayFlags& f) {
         f.replay_concurrency.reset();
         f.arrival_interval_ms = "-1";
       },
       "--arrival-interval-ms: must be a finite number >= 0, got \"-1\""},
      {[](ReplayFlags& f) { f.session_prompts = "long"; },
       "--session-prompts: must be fixed or cumulative, got 'long'"},
  };
  for (const auto& [change, message] : synthetic_cases) {
    EXPECT_EQ(ErrorOf(Synthetic(), change), message);
  }
}

TEST(ReplayFlags, WhatIsNotInThisVersionIsRefusedByName) {
  EXPECT_EQ(ErrorOf(Trace(),
                    [](ReplayFlags& f) {
                      f.replay_mode = "online";
                      f.capture_telemetry = true;
                    }),
            "--capture-telemetry: only supports --replay-mode offline");
  for (const UnavailableFlag& flag : UnavailableFlags()) {
    EXPECT_EQ(ErrorOf(Trace(), [&](ReplayFlags& f) { f.unavailable.emplace_back(flag.name); }),
              std::string(flag.name) + ": is not available in this version (it belongs to " +
                  std::string(flag.subject) + ")");
  }
}

}  // namespace
}  // namespace dynosim::scenario
