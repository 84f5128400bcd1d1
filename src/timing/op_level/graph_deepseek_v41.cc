// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/numeric.h"
#include "base/result.h"
#include "timing/op_level/dsv41_sizes.h"
#include "timing/op_level/graph.h"
#include "timing/op_level/kv_bytes.h"
#include "timing/op_level/model_spec.h"
#include "timing/op_level/operation.h"

namespace dynosim::timing {
namespace {

// A scale byte per so many values: in both directions of a weight, along a row of other tensors.
constexpr std::uint64_t kScaleBlock = 32;

Result<std::vector<std::uint64_t>> WholeNumbers(const ModelSpec& m, std::string_view name) {
  std::vector<std::uint64_t> out;
  const Json* const list = m.text.Find(name);
  if (list != nullptr && list->is_array()) {
    for (const Json& item : list->array()) {
      if (const auto number = WholeNumber(&item)) {
        out.push_back(*number);
      }
    }
  }
  if (list == nullptr || !list->is_array() || out.size() != list->array().size()) {
    return UsageError("", fmt::format("the configuration of {}: {} must be a list of whole numbers",
                                      m.name, name));
  }
  return out;
}

// An FP8 matrix with its scales.
double Matrix(std::uint64_t n, std::uint64_t k) {
  return ToDouble(n) * ToDouble(k) + ToDouble(CeilDiv(n, kScaleBlock) * CeilDiv(k, kScaleBlock));
}

double AttentionWeights(const ModelSpec& m, const Dsv41Sizes& z, std::uint64_t tp) {
  const std::uint64_t heads = m.heads / tp;
  const std::uint64_t groups = std::max<std::uint64_t>(z.o_groups / tp, 1);
  return Matrix(z.q_rank, m.hidden) + Matrix(heads * m.head_dim, z.q_rank) +
         ToDouble(2 * z.q_rank) + Matrix(m.head_dim, m.hidden) + ToDouble(2 * m.head_dim) +
         ToDouble(2 * heads * m.head_dim * z.o_rank) + Matrix(m.hidden, groups * z.o_rank) +
         ToDouble(4 * heads);
}

double IndexWeights(const ModelSpec& m, const Dsv41Sizes& z) {
  const double own =
      Matrix(z.index_heads * z.index_dim, z.q_rank) + ToDouble(2 * m.hidden * z.index_heads);
  return ToDouble(z.index_layers) * own +
         ToDouble(z.source_ratios.size() * 2 * m.head_dim * z.index_dim);
}

double CompressorWeights(const ModelSpec& m, const Dsv41Sizes& z) {
  double bytes = 0.0;
  for (const std::uint64_t ratio : z.source_ratios) {
    bytes += ToDouble(2 * m.hidden * m.head_dim * (ratio > 1 ? 2 : 1));
  }
  return bytes;
}

double EngramWeights(const ModelSpec& m, const Dsv41Sizes& z, std::uint64_t tp) {
  double bytes = 0.0;
  for (const std::uint64_t rows : z.engram_rows) {
    bytes += ToDouble(CeilDiv(rows, tp)) * ToDouble(z.engram_dim + z.engram_dim / kScaleBlock) +
             Matrix((z.hc_mult + 1) * m.hidden, z.engram_width()) +
             ToDouble(4 * z.hc_mult * m.hidden);
  }
  return bytes;
}

// Half a byte per value and the scales.
double ExpertWeights(const ModelSpec& m, const MoeLayout& layout) {
  const std::uint64_t values = m.hidden * m.moe_inter * m.experts * 3 / layout.moe_ep_size;
  return ToDouble((values / 2 + values / kScaleBlock) / layout.moe_tp_size);
}

double MixerWeights(const ModelSpec& m, const Dsv41Sizes& z) {
  constexpr std::uint64_t kBlocks = 2;  // attention and experts
  return ToDouble(kBlocks * 4 * (z.mixers() * z.hc_mult * m.hidden + z.mixers() + 3));
}

void WriteDeepSeekV41(GraphWriter& w, const Dsv41Sizes& z) {
  const ModelSpec& m = w.model();
  const double layers = ToDouble(m.layers);
  const auto unmeasured = [&w](std::string_view name, double scale, double bytes) {
    w.Add(name, scale, UnmeasuredOp{.weight_bytes = bytes});
  };
  const std::uint64_t inner = m.moe_inter * z.shared_experts / w.tp();
  w.Embedding(m.vocab / w.tp());
  unmeasured("engram", 1.0, EngramWeights(m, z, w.tp()));
  unmeasured("mhc", layers, MixerWeights(m, z));
  unmeasured("attention", layers, AttentionWeights(m, z, w.tp()));
  unmeasured("indexer", 1.0, IndexWeights(m, z));
  unmeasured("compressor", 1.0, CompressorWeights(m, z));
  unmeasured("shared_experts", layers, Matrix(2 * inner, m.hidden) + Matrix(m.hidden, inner));
  w.Gemm("router_gemm", layers, m.experts, m.hidden, "bfloat16");
  unmeasured("moe", layers, ExpertWeights(m, w.in().layout.moe));
  w.Logits();
  w.P2P();
}

}  // namespace

Result<Dsv41Sizes> FindDsv41Sizes(const ModelSpec& m) {
  Dsv41Sizes out;
  DYNO_TRY(out.q_rank, m.Need("q_lora_rank"));
  DYNO_TRY(out.o_rank, m.Need("o_lora_rank"));
  DYNO_TRY(out.o_groups, m.Need("o_groups"));
  DYNO_TRY(out.rope, m.Need("qk_rope_head_dim"));
  DYNO_TRY(out.window, m.Need("sliding_window"));
  DYNO_TRY(out.index_heads, m.Need("index_n_heads"));
  DYNO_TRY(out.index_dim, m.Need("index_head_dim"));
  DYNO_TRY(out.shared_experts, m.Need("n_shared_experts"));
  DYNO_TRY(out.hc_mult, m.Need("hc_mult"));
  DYNO_TRY(out.engram_dim, m.Need("engram_head_dim"));
  DYNO_TRY(const std::uint64_t engram_heads, m.Need("engram_n_heads"));
  DYNO_TRY(const std::uint64_t longest, m.Need("engram_max_ngram_size"));
  out.engram_columns = longest > 0 ? engram_heads * (longest - 1) : 0;
  DYNO_TRY(out.engram_rows, WholeNumbers(m, "engram_num_embeddings"));
  DYNO_TRY(const std::vector<std::uint64_t> ratios, WholeNumbers(m, "compress_ratios"));
  DYNO_TRY(const std::vector<std::uint64_t> sources, WholeNumbers(m, "kv_source_layer_ids"));
  DYNO_TRY(const std::vector<std::uint64_t> indexes, WholeNumbers(m, "index_source_layer_ids"));
  out.index_layers = indexes.size();
  for (const std::uint64_t layer : sources) {
    if (layer >= ratios.size() || ratios[layer] == 0) {
      return UsageError("", fmt::format("the configuration of {}: layer {} of kv_source_layer_ids "
                                        "has no ratio above 0 in compress_ratios",
                                        m.name, layer));
    }
    out.source_ratios.push_back(ratios[layer]);
  }
  return out;
}

double Dsv41ActivationBytes(const ModelSpec& m, const Dsv41Sizes& z) {
  return ToDouble(m.hidden * (6 * z.hc_mult + 2) + 8 * z.mixers() + 2 * z.engram_width() +
                  16 * z.engram_columns);
}

KvBytes Dsv41KvBytes(const ModelSpec& m, const Dsv41Sizes& z, bool sglang) {
  // FP8 values, the rotary ones in bfloat16, and scales per 64 values in 8 bytes.
  const double wide = ToDouble(m.head_dim + std::min(z.rope, m.head_dim) + 8);
  const double entry = sglang ? wide : ToDouble(m.head_dim) * 9.0 / 16.0;
  const double index = ToDouble(z.index_dim) / 2.0 + ToDouble(z.index_dim / kScaleBlock);
  KvBytes out;
  if (z.window > 0) {
    out.Add(
        {.bytes = ToDouble(m.layers) * (sglang ? wide : ToDouble(m.head_dim)), .window = z.window});
  }
  for (const std::uint64_t ratio : z.source_ratios) {
    out.Add({.bytes = entry + index, .window = 0, .stride = ratio});
    if (ratio > 1) {
      out.AddFixed(ToDouble(2 * ratio * m.head_dim * 4));
    }
  }
  return out;
}

Result<ModelGraph> BuildDeepSeekV41(const GraphInput& input) {
  if (input.layout.moe.attention_dp_size != 1 || input.layout.pp != 1) {
    return UsageError("", "DeepSeek-V4.1 needs attention_dp_size 1 and pp_size 1");
  }
  DYNO_TRY(const Dsv41Sizes sizes, FindDsv41Sizes(input.model));
  return WriteBoth(input, [&](GraphWriter& w) { WriteDeepSeekV41(w, sizes); });
}

}  // namespace dynosim::timing
