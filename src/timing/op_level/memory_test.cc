// SPDX-License-Identifier: Apache-2.0
// Memory and KV pools with figures worked out by hand from the models' configurations.
#include "timing/op_level/memory.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "timing/op_level/deployment_for_test.h"
#include "timing/op_level/kv_bytes.h"

namespace dynosim::timing {
namespace {

Result<Capacity> CapacityOf(const Deployment& deployment, const CapacityQuestion& question) {
  const auto model = Open(deployment);
  return model ? FindCapacity(**model, question) : Result<Capacity>(std::unexpected(model.error()));
}

TEST(Capacity, OfADenseModelOnOneGpu) {
  const auto capacity = CapacityOf(OnH200("Qwen/Qwen3-32B", "vllm"), {.block_size = 64});
  ASSERT_TRUE(capacity) << capacity.error().Text();
  EXPECT_EQ(capacity->use.weights, 65522892800.0);
  // 2 bytes x 8192 tokens x 64 heads of 128 x 11.
  EXPECT_EQ(capacity->use.activations, 1476395008.0);
  EXPECT_EQ(capacity->use.runtime, 3758096384.0);
  EXPECT_EQ(capacity->use.communication, 0.0);
  EXPECT_DOUBLE_EQ(capacity->budget_bytes, 65500453273.6);
  EXPECT_EQ(capacity->bytes_of_one_token, 262144U);  // 8 heads x 128 x 64 layers x 2 x 2 bytes
  EXPECT_EQ(capacity->tokens, 249864U);
  EXPECT_EQ(capacity->blocks, 3904U);
}

TEST(Capacity, LinearAttentionLayersHoldAStateOfFixedSize) {
  Deployment deployment = OnH200("Qwen/Qwen3.5-35B-A3B", "vllm", 2);
  deployment.moe_tp = 2;
  const auto capacity = CapacityOf(deployment, {.block_size = 64});
  ASSERT_TRUE(capacity) << capacity.error().Text();
  EXPECT_EQ(capacity->use.weights, 34680504320.0);
  EXPECT_EQ(capacity->bytes_of_one_token, 10240U + 32194560U);
  EXPECT_EQ(capacity->tokens, 9475173U);
  EXPECT_EQ(capacity->blocks, 148049U);
}

TEST(Capacity, WhatDoesNotFitIsRefusedWithItsBytes) {
  const auto capacity = CapacityOf(OnH200("meta-llama/Meta-Llama-3.1-70B", "vllm"), {});
  ASSERT_FALSE(capacity);
  EXPECT_TRUE(capacity.error().Text().starts_with("no KV budget: non-KV memory ("))
      << capacity.error().Text();
  const auto unknown = CapacityOf(OnH200("nvidia/Llama-3_3-Nemotron-Super-49B-v1", "vllm", 2), {});
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().Text().find("insufficient model metadata"), std::string::npos);
}

TEST(Capacity, TheShareOfTheMemoryIsThatOfTheEngine) {
  EXPECT_EQ(DefaultMemoryFraction("vllm"), 0.9);
  EXPECT_EQ(DefaultMemoryFraction("sglang"), 0.88);
  EXPECT_EQ(DefaultMemoryFraction("trtllm"), 0.9);
  const Deployment deployment = OnH200("Qwen/Qwen3-32B", "trtllm");
  const auto half = CapacityOf(deployment, {.block_size = 32, .memory_fraction = 0.5});
  const auto all = CapacityOf(deployment, {.block_size = 32, .memory_fraction = 1.0});
  ASSERT_TRUE(half && all);
  EXPECT_EQ(half->budget_bytes * 2.0, all->budget_bytes);
}

TEST(Capacity, DeepSeekV41SetsTheWindowsOfAllRequestsAside) {
  Deployment deployment = OnH200("deepseek-ai/DeepSeek-V4.1-Flash", "vllm", 8);
  deployment.moe_ep = 8;
  const auto capacity = CapacityOf(deployment, {.block_size = 64});
  ASSERT_TRUE(capacity) << capacity.error().Text();
  EXPECT_EQ(capacity->use.weights, 63784403976.0);
  EXPECT_EQ(capacity->use.activations, 6942097408.0);
  // 40 layers x 512 bytes, three states of 8192 bytes, one entry of 288 + 68 bytes.
  EXPECT_EQ(capacity->bytes_of_one_token, 45412U);
  // Of 256 requests 40 x 128 x 512 + 3 x 8192 bytes each; then 890 bytes a token.
  EXPECT_EQ(capacity->tokens, 68185188U);
  const auto alone = CapacityOf(deployment, {.block_size = 64, .max_requests = 1});
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->tokens, 68943316U);
}

TEST(KvBytes, WindowsAndStatesOfSequencesComeFirst) {
  KvBytes kv;
  kv.Add({.bytes = 2.0, .window = 100});
  kv.Add({.bytes = 8.0, .window = 0, .stride = 4});
  kv.AddFixed(7.0);
  EXPECT_EQ(kv.TokensBesideWindows(2 * 207.0 + 21.0, 2), 10U);
  EXPECT_EQ(kv.TokensBesideWindows(2 * 207.0, 2), 0U);
  EXPECT_EQ(kv.TokensBesideWindows(3.0, 2), 0U);
}

TEST(KvBytes, AWindowStopsGrowingAndAStrideGrowsInSteps) {
  KvBytes kv;
  kv.Add({.bytes = 2.0, .window = 100});
  kv.Add({.bytes = 8.0, .window = 0, .stride = 4});
  kv.AddFixed(7.0);
  EXPECT_EQ(kv.OfSequence(1), 7.0 + 2.0);
  EXPECT_EQ(kv.OfSequence(200), 7.0 + 200.0 + 400.0);
  EXPECT_EQ(kv.TokensWithin(7.0 + 200.0 + 400.0), 203U);
  EXPECT_EQ(kv.TokensWithin(6.0), 0U);
}

TEST(TransferBytes, CountEveryLayerAtTwoBytes) {
  const auto bytes = [](const std::string& model, std::uint64_t tp,
                        const std::optional<std::string>& kv = std::nullopt) {
    return *TransferBytesPerToken(SpecOf(model), tp, kv);
  };
  EXPECT_EQ(bytes("moonshotai/Kimi-K3", 2), 107136U);
  EXPECT_EQ(bytes("Qwen/Qwen3.5-35B-A3B", 1), 81920U);
  EXPECT_EQ(bytes("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 1), 53248U);
  EXPECT_EQ(bytes("nvidia/Nemotron-H-56B-Base-8K", 8), 60416U);
  EXPECT_EQ(bytes("deepseek-ai/DeepSeek-V3.2", 2), 70272U);
  EXPECT_EQ(bytes("deepseek-ai/DeepSeek-V4-Flash", 2), 88064U);
  EXPECT_EQ(bytes("Qwen/Qwen3-VL-32B-Instruct", 2), 131072U);
  EXPECT_EQ(bytes("Qwen/Qwen3-VL-32B-Instruct", 2, "fp8"), 65536U);
}

}  // namespace
}  // namespace dynosim::timing
