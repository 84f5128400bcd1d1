// SPDX-License-Identifier: Apache-2.0
// Data types inferred from the packaged checkpoints, and the small rules beneath.
#include "timing/op_level/quantization.h"

#include <cstdint>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "timing/op_level/deployment_for_test.h"
#include "timing/op_level/module_patterns.h"
#include "timing/op_level/token_pairs.h"

namespace dynosim::timing {
namespace {

struct Case {
  std::string_view model, backend;
  std::uint64_t sm_version;
  std::string_view modes;  // gemm, moe, fmha, kv
};

TEST(Quantization, IsReadFromTheCheckpointAndItsPlatform) {
  const Case cases[] = {
      {"Qwen/Qwen3-32B", "vllm", 90, "bfloat16 bfloat16 bfloat16 bfloat16"},
      {"Qwen/Qwen3-32B-FP8", "vllm", 90, "fp8_block fp8_block bfloat16 fp8"},
      {"Qwen/Qwen3-32B-FP8", "trtllm", 90, "fp8_block fp8_block fp8 fp8"},
      {"Qwen/Qwen3-32B-FP8-Static-PerTensor", "sglang", 90, "fp8_static fp8 fp8 fp8"},
      {"deepseek-ai/DeepSeek-V3", "sglang", 90, "fp8_block fp8_block bfloat16 fp8"},
      {"deepseek-ai/DeepSeek-V3", "sglang", 100, "fp8_block fp8_block fp8 fp8"},
      {"openai/gpt-oss-120b", "vllm", 90, "bfloat16 w4a16_mxfp4 bfloat16 bfloat16"},
      {"moonshotai/Kimi-K2.5", "vllm", 90, "bfloat16 int4_wo bfloat16 bfloat16"},
      {"nvidia/Qwen3.6-27B-NVFP4", "trtllm", 100, "fp8_static bfloat16 fp8 fp8"},
      {"nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4", "vllm", 100,
       "fp8_static nvfp4 bfloat16 fp8"},
      {"nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4", "sglang", 100,
       "fp8_static w4a16_nvfp4 fp8 fp8"},
      {"nvidia/MiniMax-M3-NVFP4", "vllm", 100, "fp8_block nvfp4 bfloat16 bfloat16"},
      {"moonshotai/Kimi-K3", "sglang", 100, "bfloat16 w4a8_mxfp4_mxfp8 bfloat16 bfloat16"},
      {"deepseek-ai/DeepSeek-V4-Flash", "sglang", 90, "fp8_block w4a16_mxfp4_cutlass bfloat16 fp8"},
  };
  for (const Case& c : cases) {
    const auto modes = FindQuantModes(SpecOf(std::string(c.model)), {},
                                      {.backend = std::string(c.backend),
                                       .version = c.backend == "sglang" ? "0.5.14" : "1",
                                       .sm_version = c.sm_version,
                                       .attention_backend = {}});
    ASSERT_TRUE(modes) << c.model;
    EXPECT_EQ(modes->gemm + " " + modes->moe + " " + modes->fmha + " " + modes->kv, c.modes)
        << c.model << " " << c.backend;
  }
}

TEST(ModulePatterns, GlobsMatchTheWholeName) {
  EXPECT_TRUE(MatchesGlob("model.layers.*.mlp*", "model.layers.3.mlp.gate"));
  EXPECT_TRUE(MatchesGlob("*", ""));
  EXPECT_FALSE(MatchesGlob("mlp", "model.mlp"));
  EXPECT_FALSE(MatchesGlob("a*c", "abcd"));
}

TEST(ModulePatterns, ExpressionsMatchFromTheStart) {
  EXPECT_TRUE(MatchesFromStart(".*mlp\\.(gate|up)_proj.*", "model.layers.0.mlp.up_proj"));
  EXPECT_FALSE(MatchesFromStart("mlp", "model.mlp"));
  EXPECT_FALSE(MatchesFromStart("(", "anything"));
}

TEST(TokenPairs, AreTheSumsTheyStandFor) {
  for (std::uint64_t prefix = 0; prefix < 12; ++prefix) {
    for (std::uint64_t added = 0; added < 12; ++added) {
      for (const std::uint64_t limit : {0U, 1U, 5U, 9U, 40U}) {
        std::uint64_t direct = 0, compressed = 0;
        for (std::uint64_t token = prefix + 1; token <= prefix + added; ++token) {
          direct += std::min(token, limit);
          compressed += std::min(token / 4, limit);
        }
        EXPECT_EQ(LimitedPairs(3, added, prefix, limit), 3 * direct);
        EXPECT_EQ(CompressedPairs(3, added, prefix, 4, limit), 3 * compressed);
      }
    }
  }
}

}  // namespace
}  // namespace dynosim::timing
