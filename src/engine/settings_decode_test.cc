// SPDX-License-Identifier: Apache-2.0
// Engine configurations: both forms, every default, every rule, and what an error names.
#include "engine/settings_decode.h"

#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "engine/settings.h"
#include "timing/model.h"

namespace dynosim::engine {
namespace {

Result<EngineSettings> Decode(std::string_view text) {
  const auto value = ParseJson(text, "text");
  if (!value) {
    return std::unexpected(value.error());
  }
  return DecodeEngineSettings(*value, "--extra-engine-args");
}
std::string ErrorOf(std::string_view text) {
  const auto decoded = Decode(text);
  return decoded ? "decoded" : decoded.error().Text();
}
// Error of {"engine": {fields}}, without the flag and the path of the object.
std::string EngineError(std::string_view fields) {
  std::string error = ErrorOf(R"({"engine":{)" + std::string(fields) + "}}");
  constexpr std::string_view kPrefix = "--extra-engine-args: engine";
  if (!error.starts_with(kPrefix)) {
    return error;
  }
  const std::string_view rest = std::string_view(error).substr(kPrefix.size());
  return std::string(rest.substr(rest.starts_with('.') ? 1 : 0));
}

TEST(EngineSettings, AnEmptyObjectGivesTheDefaults) {
  for (const std::string_view text : {"{}", R"({"engine":{}})"}) {
    const auto s = Decode(text);
    ASSERT_TRUE(s) << s.error().Text();
    EXPECT_EQ(s->backend, Backend::kVllm);
    EXPECT_EQ(s->num_gpu_blocks, 16384U);
    EXPECT_FALSE(s->num_gpu_blocks_is_explicit);
    EXPECT_EQ(s->block_size, 64U);
    EXPECT_EQ(s->max_model_len, std::nullopt);
    EXPECT_EQ(s->max_num_seqs, 256U);
    EXPECT_EQ(s->max_num_batched_tokens, 8192U);
    EXPECT_EQ(s->prefill_schedule_interval, 1U);
    EXPECT_EQ(s->prefill_decode_interval, 0U);
    EXPECT_TRUE(s->enable_prefix_caching);
    EXPECT_TRUE(s->enable_chunked_prefill);
    EXPECT_EQ(s->speedup_ratio, 1.0);
    EXPECT_EQ(s->decode_speedup_ratio, 1.0);
    EXPECT_EQ(s->speculative_tokens, 0U);
    EXPECT_EQ(s->speculative_seed, 42U);
    EXPECT_EQ(s->worker_role, WorkerRole::kAggregated);
    EXPECT_EQ(s->preemption_mode, PreemptionMode::kLifo);
    EXPECT_FALSE(s->emit_kv_events);
    EXPECT_EQ(s->kv_transfer_timing, TransferTiming::kFullPrompt);
    EXPECT_EQ(s->sglang.max_prefill_tokens, 16384U);
    EXPECT_EQ(s->sglang.chunked_prefill_size, 8192U);
    EXPECT_EQ(s->sglang.clip_max_new_tokens, 4096U);
    EXPECT_EQ(s->dp_size, 1U);
    EXPECT_EQ(s->tensor_parallel_size, 1U);
    EXPECT_EQ(s->startup_time_s, std::nullopt);
    ASSERT_NE(s->timing, nullptr);
    EXPECT_FALSE(s->timing->ConstantDecode());
    EXPECT_EQ(DumpJson(s->timing_config), R"({"type":"polynomial"})");
  }
}

TEST(EngineSettings, EveryFieldOfTheNestedFormIsRead) {
  const auto s = Decode(R"({"engine":{"backend":"sglang","num_gpu_blocks":100,"block_size":4,
      "max_model_len":50,"max_num_seqs":null,"max_num_batched_tokens":null,
      "prefill_decode_interval":3,"enable_prefix_caching":false,"enable_chunked_prefill":true,
      "speedup_ratio":2,"decode_speedup_ratio":1,"aic_nextn":3,"aic_nextn_accept_rates":"0.5, 1",
      "aic_mtp_seed":7,"worker_type":"decode","preemption_mode":"fifo","emit_kv_events":true,
      "emit_kv_token_ids":true,"kv_bytes_per_token":11,"kv_cache_bytes_per_token":12,
      "kv_transfer_bandwidth":0.5,"kv_transfer_timing_mode":"destination_missing",
      "timing_model":{"type":"fixed","prefill_ms":1,"decode_ms":2},
      "native_host_offload":null,"g3_offload":null,"state_cache":null,
      "sglang":{"schedule_policy":"lpm","max_prefill_tokens":20,"chunked_prefill_size":8,
                "clip_max_new_tokens":0,"schedule_conservativeness":0.5},
      "trtllm":{"capacity_scheduler_policy":"guaranteed_no_evict"}},
      "dp_size":2,"tensor_parallel_size":4,"startup_time":1.5,"num_gpu_blocks_is_explicit":false,
      "gpu_memory_utilization":null,"mem_fraction_static":null,"free_gpu_memory_fraction":null,
      "cuda_graph_reserved_bytes":null,
      "dynamo":{"enable_local_indexer":false,"bootstrap_port":null,
                "handoff_session_timeout_ms":300000,"reasoning":null,
                "response_replay_trace_path":null,"zmq_kv_events_port":null,
                "zmq_replay_port":null,"router_queue_policy":null}})");
  ASSERT_TRUE(s) << s.error().Text();
  EXPECT_EQ(s->backend, Backend::kSglang);
  EXPECT_EQ(s->num_gpu_blocks, 100U);
  EXPECT_FALSE(s->num_gpu_blocks_is_explicit);
  EXPECT_EQ(s->block_size, 4U);
  EXPECT_EQ(s->max_model_len, 50U);
  EXPECT_EQ(s->max_num_seqs, kUnlimited);
  EXPECT_EQ(s->max_num_batched_tokens, kUnlimited);
  EXPECT_EQ(s->prefill_decode_interval, 3U);
  EXPECT_FALSE(s->enable_prefix_caching);
  EXPECT_EQ(s->speedup_ratio, 2.0);
  EXPECT_EQ(s->speculative_tokens, 3U);
  EXPECT_EQ(s->accept_rates, (std::vector<double>{0.5, 1.0, 0.0}));
  EXPECT_EQ(s->speculative_seed, 7U);
  EXPECT_EQ(s->worker_role, WorkerRole::kDecode);
  EXPECT_EQ(s->preemption_mode, PreemptionMode::kFifo);
  EXPECT_TRUE(s->emit_kv_events);
  EXPECT_TRUE(s->emit_kv_token_ids);
  EXPECT_EQ(s->kv_transfer_bytes_per_token, 11U);
  EXPECT_EQ(s->kv_cache_bytes_per_token, 12U);
  EXPECT_EQ(s->kv_transfer_bandwidth_gbps, 0.5);
  EXPECT_EQ(s->kv_transfer_timing, TransferTiming::kDestinationMissing);
  EXPECT_TRUE(s->timing->ConstantDecode());
  EXPECT_EQ(s->sglang.schedule_policy, SglangPolicy::kLpm);
  EXPECT_EQ(s->sglang.max_prefill_tokens, 20U);
  EXPECT_EQ(s->sglang.chunked_prefill_size, 8U);
  EXPECT_EQ(s->sglang.clip_max_new_tokens, 0U);
  EXPECT_EQ(s->sglang.schedule_conservativeness, 0.5);
  EXPECT_EQ(s->dp_size, 2U);
  EXPECT_EQ(s->tensor_parallel_size, 4U);
  EXPECT_EQ(s->startup_time_s, 1.5);
}

TEST(EngineSettings, BlockSizeAndExplicitCapacityFollowTheInput) {
  const auto block_size = [](std::string_view text) { return Decode(text)->block_size; };
  EXPECT_EQ(block_size(R"({"engine":{"backend":"vllm"}})"), 64U);
  EXPECT_EQ(block_size(R"({"engine":{"backend":"sglang"}})"), 1U);
  EXPECT_EQ(block_size(R"({"engine":{"backend":"trtllm","block_size":null}})"), 32U);
  EXPECT_TRUE(Decode(R"({"engine":{"num_gpu_blocks":16384}})")->num_gpu_blocks_is_explicit);
  EXPECT_TRUE(Decode(R"({"num_gpu_blocks":16384})")->num_gpu_blocks_is_explicit);
}

TEST(EngineSettings, TheFlatFormKnowsTheOlderNames) {
  const auto s = Decode(R"({"engine_type":"sglang","num_gpu_blocks":9,"worker_type":"prefill",
      "kv_bytes_per_token":5,"dp_size":2,"startup_time":0,"sglang":{"page_size":16},
      "tensor_parallel_size":3,"timing_model":{"type":"fixed","prefill_ms":1,"decode_ms":2}})");
  ASSERT_TRUE(s) << s.error().Text();
  EXPECT_EQ(s->backend, Backend::kSglang);
  EXPECT_EQ(s->block_size, 16U);
  EXPECT_EQ(s->worker_role, WorkerRole::kPrefill);
  EXPECT_EQ(s->kv_transfer_bytes_per_token, 5U);
  EXPECT_EQ(s->dp_size, 2U);
  EXPECT_EQ(s->tensor_parallel_size, 3U);
  EXPECT_TRUE(s->timing->ConstantDecode());
  EXPECT_EQ(Decode(R"({"is_decode":true})")->worker_role, WorkerRole::kDecode);
  EXPECT_EQ(Decode(R"({"is_prefill":true,"is_decode":false})")->worker_role, WorkerRole::kPrefill);
  EXPECT_EQ(Decode(R"({"backend":"trtllm"})")->backend, Backend::kTrtllm);
}

TEST(EngineSettings, FaultsOfTheFlatForm) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {R"({"worker_type":"prefill","is_prefill":true})",
       "worker_type: cannot be combined with is_prefill or is_decode"},
      {R"({"is_prefill":true,"is_decode":true})", "is_prefill: and is_decode cannot both be true"},
      {R"({"worker_type":"x"})",
       "worker_type: must be one of aggregated, prefill, decode, got \"x\""},
      {R"({"engine_type":"vllm","backend":"vllm"})",
       "engine_type: is another name of backend; give one of them"},
      {R"({"block_size":4,"sglang":{"page_size":4}})",
       "sglang.page_size: is another name of block_size; give one of them"},
      {R"({"aic_system":"h200"})",
       "aic_system: is refused: give timing_model "
       R"({"type":"external","provider":"ais","config":{...}})"},
      {R"({"blok_size":4})", "unknown field \"blok_size\"; did you mean \"block_size\"?"},
      {"[1]", "must be an object, got an array"},
      {"\"text\"", "must be an object, got \"text\""},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_EQ(ErrorOf(text), "--extra-engine-args: " + std::string(message));
  }
}

TEST(EngineSettings, MixingTheFormsIsAnErrorThatNamesBoth) {
  EXPECT_EQ(
      ErrorOf(R"({"engine":{"num_gpu_blocks":5},"block_size":64})"),
      "--extra-engine-args: \"engine\" and \"block_size\" cannot be combined: give block_size "
      "inside \"engine\", or use the flat form without \"engine\"");
  EXPECT_TRUE(ErrorOf(R"({"engine":{},"engine_type":"vllm"})").find("\"engine_type\"") !=
              std::string::npos);
}

TEST(EngineSettings, FieldsOfTheEngineObjectAreChecked) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {R"("backend":"VLLM")", "backend: must be one of vllm, sglang, trtllm, got \"VLLM\""},
      {R"("num_gpu_blocks":0)", "num_gpu_blocks: must be an integer from 1 to 4294967294, got 0"},
      {R"("num_gpu_blocks":null)",
       "num_gpu_blocks: must be an integer from 1 to 4294967294, got null"},
      {R"("num_gpu_blocks":16.0)",
       "num_gpu_blocks: must be an integer from 1 to 4294967294, got 16.0"},
      {R"("num_gpu_blocks":4294967294,"block_size":2000000)",
       "num_gpu_blocks: times block_size must be at most 2^52 tokens, got 4294967294 blocks of "
       "2000000"},
      {R"("block_size":0)", "block_size: must be an integer from 1 to 2147483647 or null, got 0"},
      {R"("block_size":1)", "block_size: must be at least 2 with backend vllm or trtllm, got 1"},
      {R"("backend":"trtllm","block_size":1)",
       "block_size: must be at least 2 with backend vllm or trtllm, got 1"},
      {R"("max_model_len":0)", "max_model_len: must be an integer >= 1 or null, got 0"},
      {R"("max_num_seqs":0)", "max_num_seqs: must be an integer >= 1 or null, got 0"},
      {R"("max_num_batched_tokens":0)",
       "max_num_batched_tokens: must be an integer >= 1 or null, got 0"},
      {R"("prefill_schedule_interval":0)",
       "prefill_schedule_interval: must be an integer >= 1, got 0"},
      {R"("backend":"trtllm","prefill_schedule_interval":2)",
       "prefill_schedule_interval: is supported only with backend vllm; use "
       "prefill_decode_interval with backend sglang"},
      {R"("prefill_decode_interval":1)",
       "prefill_decode_interval: is supported only with backend sglang"},
      {R"("backend":"sglang","enable_chunked_prefill":false)",
       "enable_chunked_prefill: false is not supported with backend sglang"},
      {R"("enable_prefix_caching":1)", "enable_prefix_caching: must be true or false, got 1"},
      {R"("speedup_ratio":-1)", "speedup_ratio: must be a finite number >= 0, got -1"},
      {R"("decode_speedup_ratio":"2")",
       "decode_speedup_ratio: must be a finite number >= 0, got \"2\""},
      {R"("decode_speedup_ratio":2,"aic_nextn":1)",
       "decode_speedup_ratio: must be 1 with aic_nextn: speculative bursts already speed up "
       "decoding"},
      {R"("aic_nextn":6)", "aic_nextn: must be an integer from 1 to 5 or null, got 6"},
      {R"("aic_nextn":0)", "aic_nextn: must be an integer from 1 to 5 or null, got 0"},
      {R"("aic_nextn_accept_rates":"0.5")", "aic_nextn_accept_rates: requires aic_nextn"},
      {R"("aic_mtp_seed":-1)", "aic_mtp_seed: must be an integer >= 0, got -1"},
      {R"("worker_type":null)",
       "worker_type: must be one of aggregated, prefill, decode, got null"},
      {R"("backend":"trtllm","worker_type":"decode")",
       "worker_type: must be aggregated with backend trtllm (TensorRT-LLM does not run in "
       "prefill/decode mode), got decode"},
      {R"("preemption_mode":"LIFO")", "preemption_mode: must be one of lifo, fifo, got \"LIFO\""},
      {R"("emit_kv_token_ids":true)", "emit_kv_token_ids: requires emit_kv_events"},
      {R"("kv_transfer_bytes_per_token":0)",
       "kv_transfer_bytes_per_token: must be an integer >= 1 or null, got 0"},
      {R"("kv_bytes_per_token":1,"kv_transfer_bytes_per_token":1)",
       "kv_bytes_per_token: is another name of kv_transfer_bytes_per_token; give one of them"},
      {R"("kv_cache_bytes_per_token":0)",
       "kv_cache_bytes_per_token: must be an integer >= 1 or null, got 0"},
      {R"("kv_transfer_bandwidth":-1)",
       "kv_transfer_bandwidth: must be a finite number >= 0 or null, got -1"},
      {R"("kv_transfer_timing_mode":"x")",
       "kv_transfer_timing_mode: must be one of full_prompt, destination_missing, got \"x\""},
      {R"("timing_model":null)", "timing_model: must be an object, got null"},
      {R"("timing_model":{"type":"fixed","prefill_ms":1})", "timing_model.decode_ms: is required"},
      {R"("sglang":null)", "sglang: must be an object, got null"},
      {R"("trtllm":{"capacity_scheduler_policy":"max_utilization"})",
       "trtllm.capacity_scheduler_policy: must be guaranteed_no_evict, got \"max_utilization\""},
      {R"("native_host_offload":{"num_host_blocks":5})",
       "native_host_offload: is refused: offload of KV blocks is not modelled"},
      {R"("g3_offload":{})", "g3_offload: is refused: offload of KV blocks is not modelled"},
      {R"("state_cache":{"bytes_per_request":1})",
       "state_cache: is refused: per-request state caches are not modelled"},
  };
  for (const auto& [fields, message] : cases) {
    EXPECT_EQ(EngineError(fields), message);
  }
}

TEST(EngineSettings, SglangValuesAreCheckedOnlyForSglang) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {R"("sglang":{"max_prefill_tokens":0})",
       "sglang.max_prefill_tokens: must be an integer >= 1, got 0"},
      {R"("sglang":{"chunked_prefill_size":0})",
       "sglang.chunked_prefill_size: must be an integer >= 1, got 0"},
      {R"("block_size":8,"sglang":{"chunked_prefill_size":20})",
       "sglang.chunked_prefill_size: must be divisible by block_size 8, got 20"},
      {R"("sglang":{"schedule_conservativeness":-1})",
       "sglang.schedule_conservativeness: must be a finite number >= 0"},
  };
  for (const auto& [fields, message] : cases) {
    EXPECT_EQ(EngineError(R"("backend":"sglang",)" + std::string(fields)), message);
    EXPECT_EQ(EngineError(fields), "decoded");
  }
  // Types and names are checked always.
  EXPECT_EQ(EngineError(R"("sglang":{"schedule_policy":"fcfs"})"),
            "sglang.schedule_policy: must be one of fifo, lpm, got \"fcfs\"; did you mean fifo?");
  EXPECT_EQ(EngineError(R"("sglang":{"page_size":4})"),
            "sglang.page_size: is no field here; block_size is the page size");
}

TEST(EngineSettings, DataParallelSglangNeedsAChunkPerRank) {
  EXPECT_EQ(ErrorOf(R"({"engine":{"backend":"sglang","sglang":{"chunked_prefill_size":1}},
                        "dp_size":2})"),
            "--extra-engine-args: engine.sglang.chunked_prefill_size: divided by dp_size 2 must be "
            "at least 1, got 1");
  EXPECT_EQ(ErrorOf(R"({"engine":{"backend":"sglang","sglang":{"chunked_prefill_size":2}},
                        "dp_size":2})"),
            "decoded");
}

TEST(EngineSettings, FieldsBesideTheEngineAreChecked) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {R"("dp_size":0)", "dp_size: must be an integer from 1 to 65536, got 0"},
      {R"("tensor_parallel_size":4294967296)",
       "tensor_parallel_size: must be an integer from 1 to 4294967295, got 4294967296"},
      {R"("startup_time":-1)", "startup_time: must be a finite number >= 0 or null, got -1"},
      {R"("num_gpu_blocks_is_explicit":null)",
       "num_gpu_blocks_is_explicit: must be true or false, got null"},
      {R"("gpu_memory_utilization":1.5)",
       "gpu_memory_utilization: must be a finite number from 0 to 1 or null, got 1.5"},
      {R"("mem_fraction_static":0.5)",
       "mem_fraction_static: needs a timing_model of the provider \"ais\", which derives the KV "
       "capacity; give num_gpu_blocks instead"},
      {R"("cuda_graph_reserved_bytes":-1)",
       "cuda_graph_reserved_bytes: must be an integer >= 0 or null, got -1"},
      {R"("dynamo":null)", "dynamo: must be an object, got null"},
      {R"("dynamo":{"foo":1})",
       "dynamo: unknown field \"foo\"; allowed are: enable_local_indexer, "
       "handoff_session_timeout_ms, bootstrap_port, zmq_kv_events_port, zmq_replay_port, "
       "reasoning, response_replay_trace_path, router_queue_policy"},
      {R"("dynamo":{"enable_local_indexer":true})",
       "dynamo.enable_local_indexer: is refused: it belongs to live serving, which is not "
       "available in this version"},
      {R"("dynamo":{"bootstrap_port":70000})",
       "dynamo.bootstrap_port: must be an integer from 0 to 65535 or null, got 70000"},
      {R"("dynamo":{"handoff_session_timeout_ms":0})",
       "dynamo.handoff_session_timeout_ms: must be an integer >= 1, got 0"},
      {R"("dynamo":{"reasoning":{}})", "dynamo.reasoning.start_thinking_token_id: is required"},
      {R"("dynamo":{"reasoning":{"start_thinking_token_id":1,"end_thinking_token_id":2,
           "thinking_ratio":1.5}})",
       "dynamo.reasoning.thinking_ratio: must be a finite number from 0 to 1, got 1.5"},
      {R"("dynamo":{"router_queue_policy":"x"})",
       "dynamo.router_queue_policy: must be one of fcfs, lcfs, wspt, got \"x\""},
  };
  for (const auto& [fields, message] : cases) {
    EXPECT_EQ(ErrorOf(R"({"engine":{},)" + std::string(fields) + "}"),
              "--extra-engine-args: " + std::string(message));
  }
}

TEST(EngineSettings, AcceptanceRatesAreTrimmedPaddedAndChecked) {
  const auto rates = [](int count, std::string_view text) {
    return Decode(R"({"aic_nextn":)" + std::to_string(count) + R"(,"aic_nextn_accept_rates":")" +
                  std::string(text) + "\"}")
        ->accept_rates;
  };
  EXPECT_EQ(Decode(R"({"aic_nextn":2})")->accept_rates, (std::vector<double>{0.85, 0.3}));
  EXPECT_EQ(Decode(R"({"aic_nextn":2,"aic_nextn_accept_rates":null})")->accept_rates,
            (std::vector<double>{0.85, 0.3}));
  EXPECT_EQ(rates(5, "  "), (std::vector<double>{0.85, 0.3, 0.0, 0.0, 0.0}));
  EXPECT_EQ(rates(3, "0.5"), (std::vector<double>{0.5, 0.0, 0.0}));
  EXPECT_EQ(rates(2, " +0.5 , 1. , .2"), (std::vector<double>{0.5, 1.0}));
  EXPECT_EQ(rates(1, "1e-3"), std::vector<double>{1e-3});
  for (const auto& [text, shown] :
       std::vector<std::pair<std::string, std::string>>{{"abc", "entry 0 "},
                                                        {"1.5", "entry 0 "},
                                                        {"0.5,,1", "entry 1 "},
                                                        {"0.5,", "entry 1 "},
                                                        {"nan", "entry 0 "},
                                                        {"inf", "entry 0 "},
                                                        {"0.1,0.2,3", "entry 2 "},
                                                        {"0x1", "entry 0 "},
                                                        {"+-1", "entry 0 "}}) {
    EXPECT_TRUE(EngineError(R"("aic_nextn":1,"aic_nextn_accept_rates":")" + text + "\"")
                    .starts_with("aic_nextn_accept_rates: " + shown))
        << text;
  }
}

// The refused engine configurations of the conformance set: the message must name the same field
// or value as the reference's.
TEST(EngineSettings, RecordedRefusalsNameTheSameField) {
  constexpr std::string_view kVllm =
      R"("backend":"vllm","block_size":4,"num_gpu_blocks":64,)"
      R"("timing_model":{"type":"fixed","prefill_ms":10.0,"decode_ms":2.0})";
  constexpr std::string_view kSglang =
      R"("backend":"sglang","num_gpu_blocks":4096,)"
      R"("timing_model":{"type":"fixed","prefill_ms":20,"decode_ms":5})";
  const auto vllm = [&](std::string_view more) {
    return R"({"engine":{)" + std::string(kVllm) + "," + std::string(more) + "}}";
  };
  const auto sglang = [&](std::string_view more, std::string_view beside = "") {
    return R"({"engine":{)" + std::string(kSglang) + "," + std::string(more) + "}" +
           std::string(beside) + "}";
  };
  const std::pair<std::string, std::string_view> cases[] = {
      {R"({"engine":{"backend":"vllm","block_size":1,"num_gpu_blocks":64}})", "block_size"},
      {vllm(R"("aic_nextn":6)"), "aic_nextn"},
      {R"({"engine":{"backend":"trtllm","block_size":4,"prefill_schedule_interval":2}})",
       "prefill_schedule_interval"},
      {vllm(R"("foo":1)"), "foo"},
      {vllm(R"("kv_transfer_bandwidth":-1.0)"), "kv_transfer_bandwidth"},
      {vllm(R"("kv_transfer_bytes_per_token":0)"), "kv_transfer_bytes_per_token"},
      {sglang(R"("block_size":8,"sglang":{"chunked_prefill_size":20})"), "chunked_prefill_size"},
      {sglang(R"("sglang":{"chunked_prefill_size":1})", R"(,"dp_size":2)"), "chunked_prefill_size"},
      {sglang(R"("enable_chunked_prefill":false)"), "enable_chunked_prefill"},
      {sglang(R"("sglang":{"page_size":4})"), "page_size"},
      {sglang(R"("sglang":{"schedule_policy":"fcfs"})"), "schedule_policy"},
  };
  for (const auto& [config, name] : cases) {
    const std::string error = ErrorOf(config);
    EXPECT_NE(error.find(name), std::string::npos) << error;
    EXPECT_NE(error, "decoded") << config;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace dynosim::engine
