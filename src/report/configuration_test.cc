// SPDX-License-Identifier: Apache-2.0
// The configuration of a report reproduces its run: engines decode to the same settings.
#include "report/configuration.h"

#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/json.h"
#include "engine/settings.h"
#include "engine/settings_decode.h"
#include "report/texts_for_test.h"
#include "scenario/scenario.h"
#include "workload/spec.h"

namespace dynosim::report {
namespace {

engine::EngineSettings Decoded(const Json& json) {
  const auto settings = engine::DecodeEngineSettings(json, "engine");
  EXPECT_TRUE(settings) << settings.error().Text();
  return settings.value_or(engine::EngineSettings());
}

TEST(Configuration, AnEngineDecodesToItself) {
  for (const std::string_view text : {
           R"({})",
           R"({"engine":{"backend":"trtllm","num_gpu_blocks":77,"max_num_seqs":null},"dp_size":2})",
           R"({"engine":{"aic_nextn":2,"aic_nextn_accept_rates":"0.85, 0.3","aic_mtp_seed":7,
               "max_model_len":4096,"timing_model":{"type":"fixed","prefill_ms":10,"decode_ms":2}},
               "startup_time":1.5,"tensor_parallel_size":4})",
           R"({"engine":{"backend":"vllm","preemption_mode":"fifo","emit_kv_events":true,
               "enable_prefix_caching":false,"kv_transfer_bytes_per_token":10,
               "kv_transfer_bandwidth":2,"kv_transfer_timing_mode":"destination_missing",
               "max_num_batched_tokens":null,"prefill_schedule_interval":3}})",
           R"({"block_size":64,"num_gpu_blocks":1024})",
       }) {
    const Json first = EngineJson(Decoded(Parsed(text)));
    const Json second = EngineJson(Decoded(first));
    EXPECT_EQ(DumpJson(first), DumpJson(second)) << text;
  }
}

TEST(Configuration, EngineFieldsAreTheNormalizedOnes) {
  const Json json = EngineJson(Decoded(Parsed(R"({"engine":{"aic_nextn":2,"max_num_seqs":null,
                 "timing_model":{"type":"fixed","prefill_ms":10,"decode_ms":2}}})")));
  const Json& core = *json.Find("engine");
  EXPECT_EQ(core.Find("backend")->string(), "vllm");
  EXPECT_EQ(core.Find("block_size")->number(), 64.0);
  EXPECT_TRUE(core.Find("max_num_seqs")->is_null());
  EXPECT_EQ(core.Find("aic_nextn_accept_rates")->string(), "0.85,0.3");
  EXPECT_EQ(core.Find("worker_type")->string(), "aggregated");
  EXPECT_EQ(core.Find("timing_model")->Find("prefill_ms")->number(), 10.0);
  EXPECT_EQ(core.Find("kv_cache_bytes_per_token"), nullptr);
  EXPECT_FALSE(json.Find("num_gpu_blocks_is_explicit")->boolean());
}

TEST(Configuration, ATraceRunNamesItsFilesAndFlags) {
  // On the heap: gcc 12 takes empty members of a local one for uninitialised.
  const auto owned = std::make_unique<scenario::Scenario>();
  scenario::Scenario& scenario = *owned;
  scenario.workload.trace.emplace().files = {"a.jsonl", "b.jsonl"};
  scenario.workload.trace->block_size = 64;
  scenario.workload.replay_concurrency = 8;
  scenario.num_workers = 4;
  scenario.max_sim_time_ms = 250.0;
  scenario.goodput.itl_ms = 20.0;
  const Json json = ConfigurationJson(scenario);
  EXPECT_EQ(DumpJson(*json.Find("trace_files")), R"(["a.jsonl","b.jsonl"])");
  EXPECT_EQ(json.Find("trace_format")->string(), "mooncake");
  EXPECT_EQ(json.Find("trace_block_size")->number(), 64.0);
  EXPECT_EQ(json.Find("replay_concurrency")->number(), 8.0);
  EXPECT_EQ(json.Find("num_workers")->number(), 4.0);
  EXPECT_EQ(json.Find("max_sim_time_ms")->number(), 250.0);
  EXPECT_EQ(json.Find("sla_itl_ms")->number(), 20.0);
  for (const char* absent :
       {"input_tokens", "sla_ttft_ms", "trace_num_prefix_groups", "telemetry_sample_interval_ms"}) {
    EXPECT_EQ(json.Find(absent), nullptr) << absent;
  }
}

TEST(Configuration, APrefillDecodeRunNamesBothEngines) {
  // On the heap: gcc 12 takes empty members of a local one for uninitialised.
  const auto owned = std::make_unique<scenario::Scenario>();
  scenario::Scenario& scenario = *owned;
  scenario.prefill_engine.emplace().worker_role = engine::WorkerRole::kPrefill;
  scenario.decode_engine.emplace().worker_role = engine::WorkerRole::kDecode;
  scenario.num_prefill_workers = 2;
  scenario.num_decode_workers = 3;
  const Json json = ConfigurationJson(scenario);
  EXPECT_EQ(json.Find("num_prefill_workers")->number(), 2.0);
  EXPECT_EQ(json.Find("num_decode_workers")->number(), 3.0);
  EXPECT_EQ(json.Find("prefill_engine_args")->Find("engine")->Find("worker_type")->string(),
            "prefill");
  EXPECT_EQ(json.Find("decode_engine_args")->Find("engine")->Find("worker_type")->string(),
            "decode");
  EXPECT_EQ(json.Find("extra_engine_args"), nullptr);
  EXPECT_EQ(json.Find("num_workers"), nullptr);
}

TEST(Configuration, ASyntheticRunNamesItsShape) {
  scenario::Scenario scenario;
  scenario.workload.synthetic = {.input_tokens = 1024,
                                 .output_tokens = 128,
                                 .request_count = 10,
                                 .request_rate = 2.5,
                                 .arrival_interval_ms = {},
                                 .arrival_seed = 9};
  scenario.telemetry.capture = true;
  const Json json = ConfigurationJson(scenario);
  EXPECT_EQ(json.Find("input_tokens")->number(), 1024.0);
  EXPECT_EQ(json.Find("request_rate")->number(), 2.5);
  EXPECT_EQ(json.Find("arrival_seed")->number(), 9.0);
  EXPECT_EQ(json.Find("telemetry_sample_interval_ms")->number(), 1000.0);
  EXPECT_EQ(json.Find("arrival_interval_ms"), nullptr);
  EXPECT_EQ(json.Find("trace_files"), nullptr);
  EXPECT_EQ(json.Find("session_prompts"), nullptr);
  EXPECT_EQ(json.Find("replay_mode")->string(), "offline");

  scenario.workload.synthetic->session_prompts = workload::SessionPrompts::kCumulative;
  scenario.online = true;
  const Json growing = ConfigurationJson(scenario);
  EXPECT_EQ(growing.Find("session_prompts")->string(), "cumulative");
  EXPECT_EQ(growing.Find("replay_mode")->string(), "online");
}

}  // namespace
}  // namespace dynosim::report
