// SPDX-License-Identifier: Apache-2.0
// The measured timing model behind the registry: its configuration, its two questions, and runs.
#include "timing/ais.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "timing/model.h"
#include "timing/registry.h"

namespace dynosim::timing {
namespace {

std::string Config(std::string_view more) {
  return R"({"type":"external","provider":"ais","config":{"systems_paths":[")" +
         std::string(DYNO_SOURCE_DIR) + R"(/data/perfdata"],"model":"Qwen/Qwen3-32B",)" +
         R"("system":"h200_sxm","backend":"vllm","worker_type":"aggregated")" + std::string(more) +
         "}}";
}

Result<NamedTiming> Make(std::string_view more) {
  const auto spec = ParseJson(Config(more), "");
  return MakeTiming(*spec, "timing_model", "--flag");
}

TEST(AisTiming, AnswersAsThePassesItIsMadeOf) {
  const auto made = Make("");
  ASSERT_TRUE(made) << made.error().Text();
  ASSERT_NE(made->ais, nullptr);
  const PassModel& passes = made->ais->passes();
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(made->model->PrefillMs({.requests = 2, .mean_new = 500, .mean_prefix = 64}),
              *passes.PrefillMs(2, 500, 64));
    // 3 requests with 1502 tokens in all: the mean is 500.
    EXPECT_EQ(made->model->DecodeMs({.requests = 3, .context_tokens = 1502, .capacity_tokens = 1}),
              *passes.DecodeMs(3, 500));
  }
}

TEST(AisTiming, ARunIsItsPassesOneByOne) {
  const auto made = Make("");
  ASSERT_TRUE(made);
  std::vector<double> run(50);
  DecodeBatch batch{.requests = 7, .context_tokens = 7100, .capacity_tokens = 1};
  made->model->DecodeRunMs(batch, run);
  for (const double ms : run) {
    EXPECT_EQ(ms, made->model->DecodeMs(batch));
    batch.context_tokens += batch.requests;
  }
}

TEST(AisTiming, FaultsNameTheField) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {R"(,"tp":0)", "--flag: timing_model.config.tp: must be an integer >= 1 or null, got 0"},
      {R"(,"tp":1,"tp_size":1)",
       "--flag: timing_model.config.tp_size: is another name of tp; give one of them"},
      {R"(,"moe_tp_size":2)",
       "--flag: timing_model.config.moe_ep_size: moe_tp_size and moe_ep_size go together"},
      {R"(,"database_mode":"SOL")",
       "--flag: timing_model.config.database_mode: only SILICON is supported, got \"SOL\""},
      {R"(,"cp_size":2)",
       "--flag: timing_model.config.cp_size: context parallelism is not modelled; must be 1, got "
       "2"},
      {R"(,"backend_version":"9")",
       "--flag: timing_model.config: no timing data for Qwen/Qwen3-32B with vllm 9 on h200_sxm: no "
       "performance data for vllm 9 on h200_sxm; available: 0.24.0 (current), 0.27.1 (next)"},
      {R"(,"gemm_quant_mode":"nvfp4")",
       "--flag: timing_model.config: no timing data for Qwen/Qwen3-32B with vllm on h200_sxm: "
       "missing performance data: GEMM data missing for quant 'nvfp4'"},
  };
  for (const auto& [more, message] : cases) {
    const auto made = Make(more);
    ASSERT_FALSE(made) << more;
    EXPECT_EQ(made.error().Text(), message);
  }
}

}  // namespace
}  // namespace dynosim::timing
