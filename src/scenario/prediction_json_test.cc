// SPDX-License-Identifier: Apache-2.0
#include "scenario/prediction_json.h"

#include <string>

#include <gtest/gtest.h>

#include "base/json.h"
#include "config/yaml_to_json.h"
#include "config/yaml_writer.h"
#include "scenario/prediction.h"

namespace dynosim::scenario {
namespace {

constexpr const char* kEngine =
    "engine: {model: a/b, hardware: h200_sxm, workers: {aggregated: {}}}";

// The document written out, written as YAML, and read again.
void ExpectStable(const std::string& text, Stack stack = Stack::kEngine) {
  const auto json = config::ParseYaml(text, "test");
  ASSERT_TRUE(json) << text;
  const auto document = DecodePrediction(*json, stack, "test");
  ASSERT_TRUE(document) << document.error().Text();
  const Json written = PredictionJson(*document, stack);
  const std::string yaml = config::WriteYaml(written);
  const auto read = config::ParseYaml(yaml, "written");
  ASSERT_TRUE(read) << yaml;
  const auto again = DecodePrediction(*read, stack, "written");
  ASSERT_TRUE(again) << again.error().Text() << "\n" << yaml;
  EXPECT_EQ(DumpJson(PredictionJson(*again, stack)), DumpJson(written)) << yaml;
}

TEST(PredictionJson, FillsDefaultsIn) {
  const auto document = DecodePrediction(*config::ParseYaml(kEngine, "t"), Stack::kEngine, "t");
  ASSERT_TRUE(document);
  const Json json = PredictionJson(*document, Stack::kEngine);
  const Json& worker = *json.Find("engine")->Find("workers")->Find("aggregated");
  EXPECT_EQ(worker.Find("scheduler")->Find("max_sequences")->number(), 256.0);
  EXPECT_EQ(worker.Find("kv_cache")->Find("block_size")->number(), 64.0);
  EXPECT_EQ(json.Find("traffic")->Find("stop")->Find("requests")->number(), 100.0);
}

TEST(PredictionJson, ReadsBackAsTheSameDocument) {
  const std::string engine = std::string(kEngine) + "\n";
  ExpectStable(engine);
  ExpectStable(engine + "evaluation: {sla: {ttft_ms: 10, itl_ms: 0.5}}");
  ExpectStable(engine +
               "traffic: {source: {type: synthetic-session, session: {turns: 3, "
               "prompts: fixed}}, load: {type: poisson, sessions_per_second: 2.5}, stop: "
               "{sessions_per_load_unit: 3}}");
  ExpectStable(engine +
               "traffic: {source: {type: trace, paths: ['a b: c.jsonl']}, load: {type: "
               "trace_timestamps, speedup: 2}, stop: {max_virtual_time_seconds: 9}}");
  ExpectStable(engine + "router: {policy: kv_router, temperature: 0.5}", Stack::kDynamo);
  ExpectStable(
      "engine: {mode: disaggregated, model: 'yes', hardware: '1', backend: sglang, context_length: "
      "99, workers: {prefill: {kv_cache: {capacity: {type: fixed, blocks: 9}}}, decode: {timing: "
      "{type: fixed, prefill_ms: 1, decode_ms: 2}}}, kv_transfer: {bandwidth_gb_per_second: 2}}");
}

}  // namespace
}  // namespace dynosim::scenario
