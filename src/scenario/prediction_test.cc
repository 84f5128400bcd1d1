// SPDX-License-Identifier: Apache-2.0
// The document of predict: defaults, rules of every section, lowering to a scenario, the schema.
#include "scenario/prediction.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "config/overrides.h"
#include "config/yaml_to_json.h"
#include "engine/settings.h"
#include "scenario/scenario.h"
#include "workload/spec.h"

namespace dynosim::scenario {
namespace {

constexpr std::string_view kDocument = R"(
traffic: {stop: {requests: 6}}
engine:
  model: some/model
  hardware: h200_sxm
  context_length: 2048
  workers:
    aggregated:
      kv_cache: {capacity: {type: fixed, blocks: 256}}
      timing: {type: fixed, prefill_ms: 1, decode_ms: 2}
)";
constexpr std::string_view kPair = R"(
engine:
  mode: disaggregated
  model: some/model
  hardware: h200_sxm
  context_length: 2048
  workers:
    prefill:
      parallelism: {replicas: 2, tensor: 4}
      kv_cache: {block_size: 32, capacity: {type: fixed, blocks: 100}}
      timing: {type: polynomial}
    decode:
      parallelism: {replicas: 3}
      kv_cache: {block_size: 128, capacity: {type: fixed, blocks: 200}}
      timing: {type: polynomial}
  kv_transfer: {bytes_per_token: 1000, bandwidth_gb_per_second: 50}
)";

Json Document(std::string_view text, const std::vector<std::string>& sets) {
  Json json = *config::ParseYaml(text, "d");
  for (const std::string& set : sets) {
    const auto done = config::ApplyOverride(json, set, "d");
    EXPECT_TRUE(done) << (done ? "" : done.error().Text());
  }
  return json;
}

Scenario Build(std::string_view text, const std::vector<std::string>& sets = {},
               Stack stack = Stack::kEngine) {
  auto scenario = BuildPrediction(Document(text, sets), stack, "d");
  EXPECT_TRUE(scenario) << (scenario ? "" : scenario.error().Text());
  return scenario ? *std::move(scenario) : Scenario();
}

std::string ErrorOf(std::string_view text, const std::vector<std::string>& sets,
                    Stack stack = Stack::kEngine) {
  const auto scenario = BuildPrediction(Document(text, sets), stack, "d");
  return scenario ? "no error" : scenario.error().Text();
}

std::string ErrorOf(const std::string& set) { return ErrorOf(kDocument, {set}); }

constexpr std::string_view kTrace =
    "traffic={source: {type: trace, paths: [t.jsonl]}, load: {type: trace_timestamps}}";

TEST(Prediction, AbsentTrafficIsAHundredRequestsTenAtATime) {
  const Scenario s = Build(kPair);
  ASSERT_TRUE(s.workload.synthetic);
  EXPECT_EQ(s.workload.synthetic->input_tokens, 1024);
  EXPECT_EQ(s.workload.synthetic->output_tokens, 128);
  EXPECT_EQ(s.workload.synthetic->request_count, 100);
  EXPECT_EQ(s.workload.replay_concurrency, 10);
}

TEST(Prediction, LoadsBecomeArrivals) {
  const Scenario poisson =
      Build(kDocument, {"traffic.load={type: poisson, requests_per_second: 20, seed: 7}"});
  EXPECT_EQ(poisson.workload.synthetic->request_rate, 20.0);
  EXPECT_EQ(poisson.workload.synthetic->arrival_seed, 7U);
  EXPECT_EQ(poisson.workload.replay_concurrency, std::nullopt);
  const Scenario constant =
      Build(kDocument, {"traffic.load={type: constant_rate, requests_per_second: 20}"});
  EXPECT_EQ(constant.workload.synthetic->arrival_interval_ms, 50.0);
}

TEST(Prediction, CountsPerLoadUnitRoundHalfToEvenAndAreAtLeastOne) {
  const auto count = [](const std::string& concurrency, const std::string& per_unit) {
    return Build(kDocument, {"traffic.load.concurrency=" + concurrency,
                             "traffic.stop={requests_per_load_unit: " + per_unit + "}"})
        .workload.synthetic->request_count;
  };
  EXPECT_EQ(count("2", "2.5"), 5);
  EXPECT_EQ(count("1", "2.5"), 2);
  EXPECT_EQ(count("1", "3.5"), 4);
  EXPECT_EQ(count("1", "0.1"), 1);
  const Scenario rate = Build(kDocument, {"traffic.load={type: poisson, requests_per_second: 0.5}",
                                          "traffic.stop={requests_per_load_unit: 7}"});
  EXPECT_EQ(rate.workload.synthetic->request_count, 4);  // 3.5
}

TEST(Prediction, SessionsGrowUnlessTheirPromptsAreFixed) {
  const std::string source =
      "traffic={source: {type: synthetic-session, new_input_tokens_per_turn: 128, "
      "output_tokens_per_turn: 4, session: {turns: 3, shared_prefix_ratio: 0.5, prefix_groups: 2, "
      "inter_turn_delay_ms: 5}}, load: {type: poisson, sessions_per_second: 2}, "
      "stop: {sessions: 3}}";
  const workload::SyntheticSpec grown = *Build(kDocument, {source}).workload.synthetic;
  EXPECT_EQ(grown.input_tokens, 128);
  EXPECT_EQ(grown.output_tokens, 4);
  EXPECT_EQ(grown.request_count, 3);
  EXPECT_EQ(grown.turns_per_session, 3);
  EXPECT_EQ(grown.shared_prefix_ratio, 0.5);
  EXPECT_EQ(grown.num_prefix_groups, 2);
  EXPECT_EQ(grown.inter_turn_delay_ms, 5.0);
  EXPECT_EQ(grown.request_rate, 2.0);
  EXPECT_EQ(grown.session_prompts, workload::SessionPrompts::kCumulative);
  const Scenario fixed = Build(kDocument, {source, "traffic.source.session.prompts=fixed"});
  EXPECT_EQ(fixed.workload.synthetic->session_prompts, workload::SessionPrompts::kFixed);
}

TEST(Prediction, TracesKeepTheirOptions) {
  const Scenario s = Build(
      kDocument, {"traffic={source: {type: trace, format: dynamo, paths: [a, b], block_size: 16}, "
                  "load: {type: trace_timestamps, speedup: 2, agentic_lanes: 3}, "
                  "stop: {max_virtual_time_seconds: 1.5}}"});
  ASSERT_TRUE(s.workload.trace);
  EXPECT_EQ(s.workload.trace->files, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(s.workload.trace->format, "dynamo");
  EXPECT_EQ(s.workload.trace->block_size, 16);
  EXPECT_EQ(s.workload.trace->agentic_lanes, 3);
  EXPECT_EQ(s.workload.trace->execution_model, "some/model");
  EXPECT_EQ(s.workload.arrival_speedup_ratio, 2.0);
  EXPECT_EQ(s.max_sim_time_ms, 1500.0);
  const Scenario closed =
      Build(kDocument, {std::string(kTrace), "traffic.load={type: concurrency, concurrency: 4}"});
  EXPECT_EQ(closed.workload.replay_concurrency, 4);
  EXPECT_EQ(closed.workload.trace->execution_model, std::nullopt);
}

TEST(Prediction, WorkersBecomeEngines) {
  const Scenario s =
      Build(kDocument,
            {"engine.workers.aggregated.parallelism={replicas: 3, tensor: 2, pipeline: 2, "
             "attention_data: 4}",
             "engine.workers.aggregated.scheduler={max_batched_tokens: 4096, max_sequences: 32}",
             "engine.workers.aggregated.kv_cache.prefix_caching=no",
             "engine.workers.aggregated.startup_seconds=12"});
  EXPECT_EQ(s.num_workers, 3U);
  EXPECT_EQ(s.engine.tensor_parallel_size, 2U);
  EXPECT_EQ(s.engine.dp_size, 4U);
  EXPECT_EQ(s.engine.gpus(), 16U);
  EXPECT_EQ(s.engine.max_num_batched_tokens, 4096U);
  EXPECT_EQ(s.engine.max_num_seqs, 32U);
  EXPECT_EQ(s.engine.num_gpu_blocks, 256U);
  EXPECT_TRUE(s.engine.num_gpu_blocks_is_explicit);
  EXPECT_EQ(s.engine.block_size, 64U);
  EXPECT_EQ(s.engine.max_model_len, 2048U);
  EXPECT_FALSE(s.engine.enable_prefix_caching);
  EXPECT_EQ(s.engine.startup_time_s, 12.0);
  EXPECT_EQ(DumpJson(s.engine.timing_config),
            R"({"type":"fixed","prefill_ms":1.0,"decode_ms":2.0})");
}

TEST(Prediction, PoolsMayDifferInTheirBlocks) {
  const Scenario s = Build(kPair);
  ASSERT_TRUE(s.disaggregated());
  EXPECT_EQ(s.num_prefill_workers, 2U);
  EXPECT_EQ(s.num_decode_workers, 3U);
  EXPECT_EQ(s.prefill_engine->block_size, 32U);
  EXPECT_EQ(s.decode_engine->block_size, 128U);
  EXPECT_EQ(s.block_size(), 32U);
  EXPECT_EQ(s.prefill_engine->max_num_seqs, 1U);  // of the role
  EXPECT_EQ(s.decode_engine->max_num_seqs, 256U);
  EXPECT_EQ(s.prefill_engine->kv_transfer_bytes_per_token, 1000U);
  EXPECT_EQ(s.prefill_engine->kv_transfer_bandwidth_gbps, 50.0);
  EXPECT_EQ(s.prefill_engine->kv_transfer_timing, engine::TransferTiming::kDestinationMissing);
}

TEST(Prediction, FixedBytesBecomeWholeBlocks) {
  const Scenario s = Build(
      kDocument, {"engine.workers.aggregated.kv_cache={block_size: 16, bytes_per_token: 1000, "
                  "capacity: {type: fixed, bytes: 100000}}"});
  EXPECT_EQ(s.engine.num_gpu_blocks, 6U);
  EXPECT_EQ(ErrorOf("engine.workers.aggregated.kv_cache={block_size: 16, bytes_per_token: 1000, "
                    "capacity: {type: fixed, bytes: 15000}}"),
            "d: engine.workers.aggregated.kv_cache.capacity.bytes: 15000 is less than one block of "
            "16 tokens of 1000 bytes");
}

// Qwen3-32B on H200 is the worked example of chapter 92: 64 layers, 8 KV heads of 128.
constexpr std::string_view kMeasured = R"(
engine:
  model: Qwen/Qwen3-32B
  hardware: h200_sxm
  workers: {aggregated: {}}
)";
constexpr std::string_view kMeasuredPair = R"(
engine:
  mode: disaggregated
  model: Qwen/Qwen3-32B
  hardware: h200_sxm
  workers: {prefill: {parallelism: {tensor: 2}}, decode: {parallelism: {tensor: 4}}}
  kv_transfer: {bandwidth_gb_per_second: 50}
)";

TEST(Prediction, DefaultsComeFromTheModelAndTheHardware) {
  const Scenario s = Build(kMeasured);
  EXPECT_EQ(s.engine.num_gpu_blocks, 3904U);
  EXPECT_FALSE(s.engine.num_gpu_blocks_is_explicit);
  EXPECT_EQ(s.engine.max_model_len, 40960U);
  EXPECT_EQ(s.engine.timing_config.Find("provider")->string(), "ais");
  // The same size with other times.
  const Scenario curve = Build(kMeasured, {"engine.workers.aggregated.timing.type=polynomial"});
  EXPECT_EQ(curve.engine.num_gpu_blocks, 3904U);
  EXPECT_EQ(DumpJson(curve.engine.timing_config), R"({"type":"polynomial"})");
  // SGLang is told no limit.
  EXPECT_EQ(Build(kMeasured, {"engine.backend=sglang"}).engine.max_model_len, std::nullopt);
}

TEST(Prediction, MoreMemoryGivesMoreBlocks) {
  const std::string path = "engine.workers.aggregated.kv_cache.capacity.memory_fraction=";
  EXPECT_LT(Build(kMeasured, {path + "0.8"}).engine.num_gpu_blocks, 3904U);
  EXPECT_GT(Build(kMeasured, {path + "0.95"}).engine.num_gpu_blocks, 3904U);
  const Scenario bytes =
      Build(kMeasured, {"engine.workers.aggregated.kv_cache.capacity={type: fixed, bytes: "
                        "1000000000}"});
  EXPECT_EQ(bytes.engine.num_gpu_blocks, 59U);  // of 64 tokens of 262,144 bytes
}

TEST(Prediction, TransfersSendWhatTheModelHolds) {
  const Scenario s = Build(kMeasuredPair);
  EXPECT_EQ(s.prefill_engine->kv_transfer_bytes_per_token, 131072U);  // half of the heads
  EXPECT_EQ(s.prefill_engine->kv_transfer_bandwidth_gbps, 50.0);
}

TEST(Prediction, WhatTheModelCannotDoFailsTheRun) {
  const std::pair<std::string, std::string> cases[] = {
      {"engine.model=Qwen/Qwen3-32X", "d: engine.model: the model 'Qwen/Qwen3-32X' is not known"},
      {"engine.hardware=h201_sxm", "d: engine.workers.aggregated.timing: no timing data for"},
      {"engine.workers.aggregated.kv_cache.capacity.memory_fraction=0.1",
       "d: engine.workers.aggregated.kv_cache.capacity: no KV budget"}};
  for (const auto& [set, begin] : cases) {
    const auto scenario = BuildPrediction(Document(kMeasured, {set}), Stack::kEngine, "d");
    ASSERT_FALSE(scenario) << set;
    EXPECT_EQ(scenario.error().Text().substr(0, begin.size()), begin) << set;
    EXPECT_EQ(scenario.error().kind, ErrorKind::kFailed) << set;
  }
}

TEST(Prediction, BoundsBecomeGoodput) {
  EXPECT_EQ(Build(kDocument, {"evaluation.sla={ttft_ms: 10, itl_ms: 5}"}).goodput.itl_ms, 5.0);
  EXPECT_EQ(ErrorOf("evaluation.sla={ttft_ms: 10, e2e_ms: 5}"),
            "d: evaluation.sla.e2e_ms: cannot be combined with ttft_ms or itl_ms");
  EXPECT_EQ(ErrorOf("evaluation.sla={ttft_ms: 0}"),
            "d: evaluation.sla.ttft_ms: must be a finite number > 0 or null, got 0");
}

TEST(Prediction, TheRouterBelongsToTheDynamoStack) {
  const Scenario s =
      Build(kDocument, {"router={policy: kv_router, overlap_score_credit: 0.5, seed: 3}"},
            Stack::kDynamo);
  EXPECT_EQ(s.router.mode, "kv_router");
  EXPECT_EQ(s.router.kv.overlap_score_credit, 0.5);
  EXPECT_EQ(s.router.seed, 3U);
  EXPECT_EQ(Build(kDocument).router.mode, "round_robin");
  EXPECT_EQ(ErrorOf("router.policy=round_robin").substr(0, 50),
            "d: router: is a section of --stack dynamo; known f");
  EXPECT_EQ(ErrorOf(kDocument, {"router.temperature=1"}, Stack::kDynamo),
            "d: router.temperature: belongs to policy kv_router and is not accepted with "
            "round_robin");
  EXPECT_EQ(ErrorOf(kDocument, {"router.policy=kv_router", "router.prefill_load_model.type=ais"},
                    Stack::kDynamo),
            "d: router.prefill_load_model.type: ais takes the time of prefills from the measured "
            "kernels of the engine, which has another timing");
  EXPECT_EQ(ErrorOf(kDocument, {"planner.policy=enabled"}, Stack::kDynamo),
            "d: planner.policy: must be disabled, got \"enabled\"");
}

TEST(Prediction, TrafficRefusalsNamePathAndReason) {
  const std::pair<std::string, std::string> cases[] = {
      {"traffic=null", "d: traffic: must be an object, got null"},
      {"traffic.stop=null",
       "d: traffic.stop: synthetic traffic requires a stop condition: requests or "
       "requests_per_load_unit"},
      {"traffic.stop={sessions: 3}",
       "d: traffic.stop: requests end by a count of requests: give requests or "
       "requests_per_load_unit"},
      {"traffic.stop.requests_per_load_unit=2",
       "d: traffic.stop: takes exactly one count condition: requests or requests_per_load_unit"},
      {"traffic.stop.max_virtual_time_seconds=2",
       "d: traffic.stop.max_virtual_time_seconds: is for traces only; give requests or "
       "requests_per_load_unit"},
      {"traffic.load={type: constant_rate}",
       "d: traffic.load.requests_per_second: is required by load type constant_rate with this "
       "source"},
      {"traffic.load={type: poisson, sessions_per_second: 1}",
       "d: traffic.load.sessions_per_second: the unit of the load rate does not match the source; "
       "give requests_per_second"},
      {"traffic.load={type: trace_timestamps}",
       "d: traffic.load.type: synthetic traffic has no timestamps: must be one of concurrency, "
       "poisson, constant_rate, got \"trace_timestamps\""},
      {"traffic.load={concurrency: 2, seed: 1}",
       "d: traffic.load.seed: belongs to type poisson and is not accepted with concurrency"},
      {"traffic.load.concurrency=0",
       "d: traffic.load.concurrency: must be an integer from 1 to 9223372036854775807, got 0"},
      {"traffic.source.output_token=1",
       "d: traffic.source: unknown field \"output_token\"; did you mean \"output_tokens\"?"},
      {"traffic={source: {type: synthetic-session}, stop: {sessions: 1}}",
       "d: traffic.source.session: is required"},
      {"traffic={source: {type: synthetic-session, session: {shared_prefix_ratio: 0.5}}, stop: "
       "{sessions: 1}}",
       "d: traffic.source.session.prefix_groups: must be >= 1 when shared_prefix_ratio is "
       "positive"},
      {"traffic={source: {type: synthetic-session, session: {turns: 2000000}}, stop: {sessions: "
       "2000000}}",
       "d: traffic.stop: asks for more than 2147483647 requests"},
      {"traffic.load.agentic_warmup=1",
       "d: traffic.load.agentic_warmup: is not available in this version"}};
  for (const auto& [set, error] : cases) {
    EXPECT_EQ(ErrorOf(set), error) << set;
  }
}

TEST(Prediction, TraceRefusalsNamePathAndReason) {
  const std::pair<std::string, std::string> cases[] = {
      {"traffic.source.paths=[]",
       "d: traffic.source.paths: must be a list of at least one string, got an empty one"},
      {"traffic.source.paths=[a, b]",
       "d: traffic.source.paths: format \"mooncake\" takes exactly one path, got 2"},
      {"traffic.source.format=mooncak",
       "d: traffic.source.format: must be one of mooncake, mooncake-delta, agentic_mooncake, weka, "
       "applied_compute_agentic, dynamo, azure, burstgpt, bailian, lengths, got \"mooncak\"; did "
       "you mean mooncake?"},
      {"traffic.source.nested_timestamp_basis=auto",
       "d: traffic.source.nested_timestamp_basis: needs format weka, got mooncake"},
      {"traffic.load={type: poisson, requests_per_second: 1}",
       "d: traffic.load.type: trace traffic requires trace_timestamps or concurrency, got "
       "\"poisson\""},
      {"traffic.load.agentic_lanes=2",
       "d: traffic.load.agentic_lanes: needs format weka, agentic_mooncake or agentic dynamo, got "
       "\"mooncake\""},
      {"traffic.stop={requests: 3}",
       "d: traffic.stop: trace traffic only accepts max_virtual_time_seconds"}};
  for (const auto& [set, error] : cases) {
    EXPECT_EQ(ErrorOf(kDocument, {std::string(kTrace), set}), error) << set;
  }
  EXPECT_EQ(ErrorOf(kDocument, {std::string(kTrace), "traffic.source.format=weka",
                                "traffic.load={type: concurrency}"}),
            "d: traffic.load.type: format \"weka\" requires trace_timestamps");
  EXPECT_EQ(ErrorOf(kDocument, {std::string(kTrace), "traffic.source.format=weka",
                                "traffic.stop={max_virtual_time_seconds: 1}"}),
            "d: traffic.stop.max_virtual_time_seconds: is not supported with format \"weka\"");
  EXPECT_EQ(
      ErrorOf(kDocument, {std::string(kTrace), "traffic.source.format=applied_compute_agentic"}),
      "d: traffic.load.type: format \"applied_compute_agentic\" requires concurrency: its traces "
      "have no first-turn timestamps");
  EXPECT_EQ(ErrorOf(kPair, {std::string(kTrace), "traffic.source.format=mooncake-delta"}),
            "d: traffic.source.format: mooncake-delta requires engine.mode aggregated");
}

TEST(Prediction, EngineRefusalsNamePathAndReason) {
  const std::pair<std::string, std::string> cases[] = {
      {"engine.hardware=auto",
       "d: engine.hardware: auto is for recommendations only; name a system such as h200_sxm"},
      {"engine.backend={choices: [vllm]}",
       "d: engine.backend: must be one of vllm, sglang, trtllm, got an object"},
      {"engine.mode=disaggregated",
       "d: engine.workers: mode disaggregated requires workers.prefill and workers.decode"},
      {"engine.workers.decode={}", "d: engine.workers.decode: is not accepted in mode aggregated"},
      {"engine.kv_transfer={}", "d: engine.kv_transfer: is not accepted in mode aggregated"},
      {"engine.workers.aggregated.kv_cache.block_size=1",
       "d: engine.workers.aggregated.kv_cache.block_size: must be an integer >= 2 with backend "
       "vllm, got 1"},
      {"engine.workers.aggregated.kv_cache.capacity={type: fixed}",
       "d: engine.workers.aggregated.kv_cache.capacity: type fixed requires blocks or bytes"},
      {"engine.workers.aggregated.kv_cache.capacity={type: fixed, blocks: 1, memory_fraction: 1}",
       "d: engine.workers.aggregated.kv_cache.capacity.memory_fraction: belongs to type default "
       "and is not accepted with fixed"},
      {"engine.workers.aggregated.kv_cache.capacity={blocks: 5}",
       "d: engine.workers.aggregated.kv_cache.capacity.blocks: belongs to type fixed and is not "
       "accepted with default"},
      {"engine.workers.aggregated.timing={type: fixed, prefill_ms: 1}",
       "d: engine.workers.aggregated.timing.decode_ms: is required"},
      {"engine.workers.aggregated.timing={type: polynomial, decode_ms: 1}",
       "d: engine.workers.aggregated.timing.decode_ms: belongs to type fixed and is not accepted "
       "with polynomial"},
      {"engine.workers.aggregated.scheduler.prefill_decode_interval=2",
       "d: engine.workers.aggregated.scheduler.prefill_decode_interval: is supported only with "
       "backend sglang, got backend vllm"},
      {"engine.workers.aggregated.parallelism={replicas: 60000, attention_data: 60000}",
       "d: engine.workers.aggregated.parallelism.replicas: times attention_data must be at most "
       "1000000 ranks, got 60000 workers of 60000"},
      {"engine.workers.aggregated.parallelism.tensr=2",
       "d: engine.workers.aggregated.parallelism: unknown field \"tensr\"; did you mean "
       "\"tensor\"?"},
      {"engine.context_length=min",
       "d: engine.context_length: must be an integer >= 1 or max, got \"min\""},
      {"engine.workers.aggregated.host_offload={}",
       "d: engine.workers.aggregated.host_offload: is refused: offload of KV blocks is not "
       "modelled"},
      {"optimization.target=throughput",
       "d: optimization: is a section of recommendations, not of predictions"},
      {"execution.resources={}", "d: execution.resources: is not available in this version"}};
  for (const auto& [set, error] : cases) {
    EXPECT_EQ(ErrorOf(set), error) << set;
  }
  EXPECT_EQ(ErrorOf(kPair, {"engine.backend=trtllm"}),
            "d: engine.mode: disaggregated is not supported with backend trtllm; use vllm or "
            "sglang");
  EXPECT_EQ(ErrorOf("traffic: {stop: {requests: 1}}", {}), "d: engine: is required");
}

TEST(Prediction, TheSchemaNamesEveryField) {
  const Json schema = PredictionSchema(Stack::kEngine);
  const Json* sections = schema.Find("properties");
  ASSERT_NE(sections, nullptr);
  std::string names;
  for (const Json::Member& member : sections->object()) {
    names += member.first + " ";
  }
  EXPECT_EQ(names, "traffic engine evaluation execution ");
  EXPECT_EQ(DumpJson(*schema.Find("required")), R"(["engine"])");
  const Json* engine = sections->Find("engine");
  EXPECT_EQ(DumpJson(*engine->Find("required")), R"(["model","hardware","workers"])");
  const Json* prefill =
      engine->Find("properties")->Find("workers")->Find("properties")->Find("prefill");
  const Json* sequences = prefill->Find("anyOf")
                              ->array()[0]
                              .Find("properties")
                              ->Find("scheduler")
                              ->Find("properties")
                              ->Find("max_sequences");
  EXPECT_EQ(DumpJson(*sequences), R"({"type":"integer","minimum":1,"description":)"
                                  R"("Sequences that run at a time on a rank.","default":1})");
  EXPECT_NE(PredictionSchema(Stack::kDynamo).Find("properties")->Find("router"), nullptr);
}

TEST(Prediction, ErrorsOfTheRunNamePathsOfTheDocument) {
  const Error error = InTermsOfDocument({.where = "--agentic-lanes", .message = "m"});
  EXPECT_EQ(error.Text(), "traffic.load.agentic_lanes: m");
  EXPECT_EQ(InTermsOfDocument({.where = "t.jsonl:3", .message = "m"}).Text(), "t.jsonl:3: m");
}

}  // namespace
}  // namespace dynosim::scenario
