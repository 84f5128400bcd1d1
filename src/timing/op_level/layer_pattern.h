// SPDX-License-Identifier: Apache-2.0
// What configuration files say about the kinds of a model's layers. Shared by the operation lists
// and by the KV cache sizes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "timing/op_level/model_spec.h"

namespace dynosim::timing {

// Layers with full or sliding-window attention, each dense or with experts.
struct LayerPattern {
  std::vector<bool> is_global;
  std::vector<bool> has_experts;
  std::uint64_t window = 0;  // of the sliding layers

  std::uint64_t Count(bool global, bool experts) const;
  std::uint64_t global() const;
  std::uint64_t sliding() const { return is_global.size() - global(); }
};
// For Llama-4, MiMo-V2, Step-3, Gemma-4 and Muse-Glimmer.
Result<LayerPattern> FindLayerPattern(const ModelSpec& model);

// The global layers of Gemma-4 have heads of their own.
struct Gemma4Heads {
  std::uint64_t global_kv_heads = 0;
  std::uint64_t global_head_dim = 0;
};
Gemma4Heads FindGemma4Heads(const ModelSpec& model);

// Ratio of each layer of DeepSeek-V4: 0, 4 or 128.
Result<std::vector<std::uint64_t>> FindCompressRatios(const ModelSpec& model);

// Gated delta network layers of Qwen3.5.
struct GdnSizes {
  std::uint64_t layers = 0;
  std::uint64_t k_heads = 0;
  std::uint64_t k_dim = 0;
  std::uint64_t v_heads = 0;
  std::uint64_t v_dim = 0;
  std::uint64_t conv = 0;
  std::string ssm_dtype;
};
Result<GdnSizes> FindGdnSizes(const ModelSpec& model);

// Kimi delta attention layers of Kimi-K3.
struct KdaSizes {
  std::uint64_t layers = 0;
  std::uint64_t heads = 0;
  std::uint64_t dim = 0;
  std::uint64_t conv = 0;
};
Result<KdaSizes> FindKdaSizes(const ModelSpec& model);

// Layers of Nemotron-H by kind.
struct MambaPattern {
  std::uint64_t mamba = 0;
  std::uint64_t attention = 0;
  std::uint64_t experts = 0;
  std::uint64_t dense = 0;
};
Result<MambaPattern> FindMambaPattern(const ModelSpec& model);

}  // namespace dynosim::timing
