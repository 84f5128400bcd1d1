// SPDX-License-Identifier: Apache-2.0
// Whole passes of deployments on the shipped data, and what is refused how.
#include "timing/op_level/pass_model.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "timing/op_level/deployment_for_test.h"

namespace dynosim::timing {
namespace {

TEST(PassModel, PrefillOfADenseModelIsTheRecordedOne) {
  const auto model = Open(OnH200("Qwen/Qwen3-32B", "vllm"));
  ASSERT_TRUE(model) << model.error().Text();
  EXPECT_NEAR(*(*model)->PrefillMs(1, 1000, 0), 90.98861228, 5e-9);
  EXPECT_NEAR(*(*model)->PrefillMs(2, 750, 0), 130.905339, 5e-7);
}

TEST(PassModel, ElementwiseKernelsAreMemoryTrafficAndALaunch) {
  const auto model = Open(OnH200("Qwen/Qwen3-32B", "vllm"));
  ASSERT_TRUE(model);
  const auto parts =
      (*model)->Breakdown({.context = true, .batch = 1, .tokens = 1000, .prefix = 0});
  ASSERT_TRUE(parts);
  // 2 bytes of 4 x 5120 values per token, 80 % of 4.8 TB/s, 3 us per launch, 64 layers.
  const double launch = 1000.0 * 2.0 * 4.0 * 5120.0 / (4.8e12 * 0.8) + 3e-6;
  EXPECT_EQ(parts->at(1).name, "context_add_norm_1");
  EXPECT_DOUBLE_EQ(parts->at(1).ms, launch * 1000.0 * 64.0);
}

TEST(PassModel, TheBreakdownAddsUpToThePass) {
  Deployment deployment = OnH200("deepseek-ai/DeepSeek-V3", "vllm", 8);
  deployment.moe_ep = 8;
  const auto model = Open(deployment);
  ASSERT_TRUE(model) << model.error().Text();
  const auto parts = (*model)->Breakdown((*model)->DecodeQuery(16, 3000));
  ASSERT_TRUE(parts);
  double sum = 0.0;
  for (const PassModel::Part& part : *parts) {
    sum += part.ms;
  }
  EXPECT_EQ(sum, *(*model)->DecodeMs(16, 3000));
}

TEST(PassModel, ACachedPrefixMakesAPassCheaperThanItsTokens) {
  const auto model = Open(OnH200("Qwen/Qwen3-32B", "sglang"));
  ASSERT_TRUE(model);
  const double whole = *(*model)->PrefillMs(1, 4096, 0);
  const double second_half = *(*model)->PrefillMs(1, 2048, 2048);
  const double first_half = *(*model)->PrefillMs(1, 2048, 0);
  EXPECT_LT(second_half, whole);
  EXPECT_GT(second_half, first_half);
}

TEST(PassModel, DraftTokensWidenTheDecodeBatch) {
  Deployment deployment = OnH200("deepseek-ai/DeepSeek-R1", "trtllm", 8);
  deployment.moe_ep = 8;
  deployment.nextn = 1;
  const auto model = Open(deployment);
  ASSERT_TRUE(model) << model.error().Text();
  EXPECT_EQ((*model)->DecodeQuery(16, 100).batch, 32U);
  // 61 layers and one draft layer.
  EXPECT_EQ((*model)->graph().generation.at(1).scale_factor, 62.0);
  EXPECT_EQ((*model)->graph().context.at(1).scale_factor, 61.0);
}

std::string Refusal(const Deployment& deployment) {
  const auto model = Open(deployment);
  return model ? "made" : model.error().Text();
}

TEST(PassModel, RefusalsSayWhatIsAvailable) {
  EXPECT_EQ(Refusal(OnH200("Qwen/Qwen3-33B", "vllm")),
            "the model 'Qwen/Qwen3-33B' is not known; did you mean Qwen/Qwen3-32B?; see `dynosim "
            "models`, or give a folder that holds the config.json of the model");
  Deployment deployment = OnH200("Qwen/Qwen3-32B", "vllm");
  deployment.system = "h20_sxm";
  EXPECT_EQ(Refusal(deployment),
            "no performance data for the system 'h20_sxm'; available: h200_sxm; did you mean "
            "h200_sxm?; others may be installed: python3 -m dynosim.perfdata install --system "
            "h20_sxm --backend vllm");
  deployment = OnH200("Qwen/Qwen3-32B", "vllm");
  deployment.backend_version = "0.1.0";
  EXPECT_EQ(Refusal(deployment),
            "no performance data for vllm 0.1.0 on h200_sxm; available: 0.24.0 (current), 0.27.1 "
            "(next)");
  deployment.backend_version = "next";
  EXPECT_EQ(Refusal(deployment),
            "the data for vllm 0.27.1 on h200_sxm is not installed; python3 -m dynosim.perfdata "
            "install --system h200_sxm --backend vllm");
}

TEST(PassModel, LayoutsThatTheModelCannotHaveAreRefused) {
  EXPECT_EQ(Refusal(OnH200("Qwen/Qwen3-32B", "vllm", 3)),
            "num_heads 64 should be divisible by tp_size 3");
  EXPECT_EQ(Refusal(OnH200("Qwen/Qwen3-30B-A3B", "vllm", 2)),
            "parallelism width mismatch: tp_size(2) * attention_dp_size(1) = 2, but "
            "moe_tp_size(1) * moe_ep_size(1) = 1; these must be equal");
  Deployment deployment = OnH200("Qwen/Qwen3-235B-A22B-FP8", "vllm", 8);
  deployment.moe_tp = 8;
  EXPECT_EQ(Refusal(deployment),
            "invalid quantized MoE configuration: (moe_intermediate_size=1536 / moe_tp_size=8) % "
            "weight_block_size=128 != 0");
  deployment = OnH200("Qwen/Qwen3-32B", "vllm");
  deployment.nextn = 6;
  EXPECT_EQ(Refusal(deployment), "nextn: must be at most 5, got 6");
}

TEST(PassModel, MissingDataAndMissingArithmeticShowAtThePass) {
  Deployment deployment = OnH200("Qwen/Qwen3-32B", "vllm");
  deployment.modes.gemm = "nvfp4";
  const auto model = Open(deployment);
  ASSERT_TRUE(model);
  const Timed time = (*model)->PrefillMs(1, 10, 0);
  ASSERT_FALSE(time);
  EXPECT_EQ(time.error().text, "GEMM data missing for quant 'nvfp4'");
  deployment.modes.gemm = "int3";
  EXPECT_TRUE(Refusal(deployment).starts_with("gemm_quant_mode: must be one of bfloat16, "))
      << Refusal(deployment);
}

}  // namespace
}  // namespace dynosim::timing
