// SPDX-License-Identifier: Apache-2.0
// The table of timing models: which objects make which model, and what is refused how.
#include "timing/registry.h"

#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "base/json.h"
#include "timing/model.h"

namespace dynosim::timing {
namespace {

constexpr DecodeBatch kBatch{.requests = 1, .context_tokens = 1, .capacity_tokens = 2};

std::string ErrorOf(std::string_view text) {
  const auto spec = ParseJson(text, "");
  const auto made = MakeTiming(*spec, "engine.timing_model", "--flag");
  return made ? "made" : made.error().Text();
}

TEST(TimingRegistry, FixedTimingHasItsTwoConstants) {
  const auto spec = ParseJson(R"({"type":"fixed","prefill_ms":10,"decode_ms":0.5})", "");
  const auto made = MakeTiming(*spec, "timing_model", "");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->model->PrefillMs({.requests = 1, .mean_new = 9, .mean_prefix = 0}), 10.0);
  EXPECT_EQ(made->model->DecodeMs(kBatch), 0.5);
  EXPECT_EQ(DumpJson(made->config), R"({"type":"fixed","prefill_ms":10.0,"decode_ms":0.5})");
}

TEST(TimingRegistry, PolynomialIsTheDefaultAndHasNoParameters) {
  const auto spec = ParseJson(R"({"type":"polynomial","a":1})", "");
  const auto made = MakeTiming(*spec, "timing_model", "");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->model->DecodeMs(kBatch), DefaultTiming().model->DecodeMs(kBatch));
  EXPECT_EQ(DumpJson(made->config), R"({"type":"polynomial"})");
}

TEST(TimingRegistry, FaultsNameTheField) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"null", "--flag: engine.timing_model: must be an object, got null"},
      {R"("fixed")", R"(--flag: engine.timing_model: must be an object, got "fixed")"},
      {"{}", "--flag: engine.timing_model.type: is required"},
      {R"({"type":"default"})",
       "--flag: engine.timing_model.type: must be one of polynomial, fixed, external, got "
       "\"default\""},
      {R"({"type":"fixed","prefill_ms":1})", "--flag: engine.timing_model.decode_ms: is required"},
      {R"({"type":"fixed","prefill_ms":-1,"decode_ms":1})",
       "--flag: engine.timing_model.prefill_ms: must be a finite number >= 0, got -1"},
      {R"({"type":"fixed","prefill_ms":1,"decode_ms":"2"})",
       "--flag: engine.timing_model.decode_ms: must be a finite number >= 0, got \"2\""},
      {R"({"type":"external"})", "--flag: engine.timing_model.provider: is required"},
      {R"({"type":"external","provider":"x"})",
       "--flag: engine.timing_model.provider: must be one of dynamo_profile, ais, aic, got \"x\""},
      {R"({"type":"external","provider":"ais","config":{}})",
       "--flag: engine.timing_model.config.model: is required"},
      {R"({"type":"external","provider":"dynamo_profile"})",
       "--flag: engine.timing_model.config: must be an object, got null"},
      {R"({"type":"external","provider":"dynamo_profile","config":{}})",
       "--flag: engine.timing_model.config.path: is required"},
      {R"({"type":"external","provider":"dynamo_profile","config":{"path":"/none.npz"}})",
       "--flag: engine.timing_model.config.path: /none.npz: no such file"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_EQ(ErrorOf(text), message);
  }
}

}  // namespace
}  // namespace dynosim::timing
