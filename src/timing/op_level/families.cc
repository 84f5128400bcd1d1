// SPDX-License-Identifier: Apache-2.0
// The one table of families, and the checks they share.
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "base/result.h"
#include "timing/op_level/graph.h"
#include "timing/op_level/layer_pattern.h"
#include "timing/op_level/model_spec.h"
#include "timing/op_level/quantization.h"

namespace dynosim::timing {
namespace {

using Builder = Result<ModelGraph> (*)(const GraphInput&);

Builder BuilderOf(Family family) {
  switch (family) {
    case Family::kLlama:
    case Family::kQwen3Vl:
      return BuildLlama;
    case Family::kMoe:
    case Family::kQwen3VlMoe:
      return BuildMoe;
    case Family::kDeepSeek:
    case Family::kKimiK25:
      return BuildDeepSeek;
    case Family::kNemotronNas:
      return BuildNemotronNas;
    case Family::kNemotronH:
      return BuildNemotronH;
    case Family::kQwen35:
      return BuildQwen35;
    case Family::kKimiK3:
      return BuildKimiK3;
    case Family::kDeepSeekV32:
      return BuildDeepSeekV32;
    case Family::kDeepSeekV4:
      return BuildDeepSeekV4;
    case Family::kDeepSeekV41:
      return BuildDeepSeekV41;
    case Family::kHybridMoe:
    case Family::kStep3p7:
      return BuildHybridMoe;
    case Family::kGemma4:
      return BuildGemma4;
    case Family::kMiniMaxM3:
      return BuildMiniMaxM3;
    case Family::kMuseGlimmer:
      return BuildMuseGlimmer;
  }
  return nullptr;
}

// Families whose widths must match in every case; the hybrids only when they have experts.
bool ChecksWidths(const ModelSpec& model) {
  if (model.Is({Family::kLlama, Family::kQwen3Vl, Family::kNemotronNas, Family::kMuseGlimmer})) {
    return false;
  }
  if (model.Is({Family::kQwen35})) {
    return model.experts > 0;
  }
  if (model.Is({Family::kNemotronH})) {
    const auto pattern = FindMambaPattern(model);
    return pattern && pattern->experts > 0;
  }
  return true;
}

Result<void> CheckWidths(const GraphInput& in) {
  const MoeLayout& moe = in.layout.moe;
  const std::uint64_t ranks = in.layout.tp * moe.attention_dp_size;
  if (ranks != moe.moe_tp_size * moe.moe_ep_size) {
    return UsageError(
        "", fmt::format("parallelism width mismatch: tp_size({}) * attention_dp_size({}) = {}, but "
                        "moe_tp_size({}) * moe_ep_size({}) = {}; these must be equal",
                        in.layout.tp, moe.attention_dp_size, ranks, moe.moe_tp_size,
                        moe.moe_ep_size, moe.moe_tp_size * moe.moe_ep_size));
  }
  const bool dense = in.model.experts == 0 || in.model.topk == 0;
  if (dense && moe.moe_ep_size > 1) {
    return UsageError("", "moe_ep_size must be 1 for a model without experts");
  }
  if (!dense && moe.moe_ep_size > in.model.experts) {
    return UsageError("", fmt::format("moe_ep_size {} cannot be larger than the number of experts "
                                      "{}",
                                      moe.moe_ep_size, in.model.experts));
  }
  return {};
}

}  // namespace

Result<void> CheckExpertBlocks(const GraphInput& in) {
  if (in.modes.moe != "fp8_block") {
    return {};
  }
  const std::uint64_t block = WeightBlock(in.model);
  const std::uint64_t width = in.model.moe_inter / in.layout.moe.moe_tp_size;
  if (width % block == 0) {
    return {};
  }
  return UsageError("", fmt::format("invalid quantized MoE configuration: "
                                    "(moe_intermediate_size={} / moe_tp_size={}) % "
                                    "weight_block_size={} != 0",
                                    in.model.moe_inter, in.layout.moe.moe_tp_size, block));
}

std::string SharedExpertMode(const GraphInput& in) {
  if (!in.modes.gemm_set) {
    for (const std::string& pattern : ExclusionPatterns(in.model)) {
      if (pattern.find("shared_expert") != std::string::npos) {
        return "bfloat16";
      }
    }
  }
  return in.modes.gemm;
}

Result<ModelGraph> BuildGraph(const GraphInput& in) {
  if (in.model.heads % in.layout.tp != 0) {
    return UsageError("", fmt::format("num_heads {} should be divisible by tp_size {}",
                                      in.model.heads, in.layout.tp));
  }
  if (ChecksWidths(in.model)) {
    DYNO_TRY_VOID(CheckWidths(in));
  }
  return BuilderOf(in.model.family)(in);
}

}  // namespace dynosim::timing
