// SPDX-License-Identifier: Apache-2.0
// Llama-Nemotron: layers from architecture search, each with its own attention and feed-forward, or
// without one of them. Equal neighbours are grouped.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/result.h"
#include "timing/op_level/graph.h"
#include "timing/op_level/model_spec.h"

namespace dynosim::timing {
namespace {

struct Block {
  std::uint64_t heads_in_group = 0;  // 0: no attention
  std::uint64_t inter = 0;           // 0: no feed-forward
  std::uint64_t count = 1;

  friend bool operator==(const Block& a, const Block& b) {
    return a.heads_in_group == b.heads_in_group && a.inter == b.inter;
  }
};

bool Flag(const Json* object, std::string_view name) {
  const Json* const value = object == nullptr ? nullptr : object->Find(name);
  return value != nullptr && value->is_bool() && value->boolean();
}

std::uint64_t InnerSize(double multiplier, std::uint64_t hidden) {
  constexpr std::uint64_t kStep = 256;
  const auto inner =
      static_cast<std::uint64_t>(2.0 * multiplier * static_cast<double>(hidden) / 3.0);
  return CeilDiv(inner, kStep) * kStep;
}

Result<std::vector<Block>> ReadBlocks(const ModelSpec& model) {
  const Json* const configs = model.text.Find("block_configs");
  if (configs == nullptr || !configs->is_array()) {
    return UsageError("", fmt::format("the configuration of {} lacks 'block_configs'", model.name));
  }
  std::vector<Block> blocks;
  for (const Json& config : configs->array()) {
    const Json* const attention = config.Find("attention");
    const Json* const ffn = config.Find("ffn");
    Block block;
    if (!Flag(attention, "no_op") && attention != nullptr) {
      block.heads_in_group = WholeNumber(attention->Find("n_heads_in_group")).value_or(0);
    }
    if (!Flag(ffn, "no_op") && ffn != nullptr) {
      constexpr double kUsual = 3.5;
      const Json* const multiplier = ffn->Find("ffn_mult");
      const double value =
          multiplier != nullptr && multiplier->is_number() ? multiplier->number() : kUsual;
      block.inter = value > 0.0 && value < 1e4 ? InnerSize(value, model.hidden) : 0;
    }
    if (!blocks.empty() && blocks.back() == block) {
      ++blocks.back().count;
    } else {
      blocks.push_back(block);
    }
  }
  return blocks;
}

void WriteBlock(GraphWriter& w, const Block& block) {
  const ModelSpec& m = w.model();
  const auto count = static_cast<double>(block.count);
  const std::string& mode = w.in().modes.gemm;
  if (block.heads_in_group > 0) {
    const std::uint64_t kv = CeilDiv(m.heads / block.heads_in_group, w.tp());
    w.Norm("add_norm_1", count);
    w.Gemm("qkv_gemm", count, m.heads * m.head_dim / w.tp() + 2 * m.head_dim * kv, m.hidden, mode);
    w.Attention("attention", count,
                {.heads = m.heads / w.tp(), .kv_heads = kv, .head_dim = m.head_dim});
    w.Gemm("proj_gemm", count, m.hidden, m.heads * m.head_dim / w.tp(), mode);
    w.AllReduce("ar_1", count);
  }
  if (block.inter > 0) {
    w.Norm("add_norm_2", count);
    w.Gemm("gate_ffn1_gemm", count, 2 * block.inter / w.tp(), m.hidden, mode);
    w.Elementwise("act_gate", count, 2 * block.inter / w.tp(), block.inter / w.tp());
    w.Gemm("ffn2_gemm", count, m.hidden, block.inter / w.tp(), mode);
    w.AllReduce("ar_2", count);
  }
}

}  // namespace

Result<ModelGraph> BuildNemotronNas(const GraphInput& input) {
  if (input.nextn > 0) {
    return UsageError("nextn", fmt::format("must be 0 for {}", input.model.name));
  }
  DYNO_TRY(const std::vector<Block> blocks, ReadBlocks(input.model));
  return WriteBoth(input, [&blocks](GraphWriter& w) {
    w.Embedding(w.model().vocab);
    for (const Block& block : blocks) {
      WriteBlock(w, block);
    }
    w.P2P();
    w.Logits();
  });
}

}  // namespace dynosim::timing
