// SPDX-License-Identifier: Apache-2.0
// Dense transformers, and mixtures of experts without further structure.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "timing/op_level/graph.h"
#include "timing/op_level/model_spec.h"

namespace dynosim::timing {
namespace {

double Layers(const GraphWriter& w) { return static_cast<double>(w.model().layers); }

void QkvGemm(GraphWriter& w, double scale) {
  const ModelSpec& m = w.model();
  w.Gemm("qkv_gemm", scale, m.heads * m.head_dim / w.tp() + 2 * m.head_dim * w.kv_heads_per_gpu(),
         m.hidden, w.in().modes.gemm);
}

AttentionShape PlainAttention(const GraphWriter& w) {
  const ModelSpec& m = w.model();
  return {.heads = m.heads / w.tp(),
          .kv_heads = w.kv_heads_per_gpu(),
          .head_dim = m.head_dim,
          .qk_norm = m.qk_norm};
}

void ProjectionGemm(GraphWriter& w, double scale) {
  const ModelSpec& m = w.model();
  w.Gemm("proj_gemm", scale, m.hidden, m.heads * m.head_dim / w.tp(), w.in().modes.gemm,
         {.low_precision_input = true});
}

void WriteLlama(GraphWriter& w) {
  const ModelSpec& m = w.model();
  const double layers = Layers(w);
  const std::string& mode = w.in().modes.gemm;
  w.Embedding(m.vocab / w.tp());
  w.Norm("add_norm_1", layers);
  QkvGemm(w, layers);
  w.Attention("attention", layers, PlainAttention(w));
  ProjectionGemm(w, layers);
  w.Norm("add_norm_2", layers);
  w.Gemm("gate_ffn1_gemm", layers, 2 * m.inter / w.tp(), m.hidden, mode);
  w.Elementwise("act_gate", layers, 2 * m.inter / w.tp(), m.inter / w.tp());
  w.Gemm("ffn2_gemm", layers, m.hidden, m.inter / w.tp(), mode, {.low_precision_input = true});
  w.Logits();
  w.AllReduce("embedding_ar", 1.0);
  w.AllReduce("ar_1", layers);
  w.AllReduce("ar_2", layers);
  w.P2P();
}

void WriteMoe(GraphWriter& w) {
  const ModelSpec& m = w.model();
  const double layers = Layers(w);
  AttentionShape attention = PlainAttention(w);
  double full_attention = layers;
  if (m.gpt_oss()) {
    // Every other layer sees only the last tokens. It stands first in the list.
    constexpr std::uint64_t kWindow = 128;
    const std::uint64_t half = m.layers / 2;
    full_attention = ToDouble(half);
    attention.window = kWindow;
    w.Attention("attention", full_attention, attention);
    attention.window = 0;
  }
  w.Embedding(m.vocab / w.tp());
  w.Norm("add_norm_1", layers);
  QkvGemm(w, layers);
  w.Attention("attention", full_attention, attention);
  ProjectionGemm(w, layers);
  w.Norm("add_norm_2", layers);
  w.Gemm("router_gemm", layers, m.experts, m.hidden, "bfloat16");
  const DispatchShape dispatch{.hidden = m.hidden, .quant = w.in().modes.moe};
  w.PreDispatch("moe_pre_dispatch", layers, dispatch);
  w.Experts("moe", layers, w.ExpertsOfModel("power_law_1.2"));
  w.PostDispatch("moe_post_dispatch", layers, dispatch);
  if (!w.context()) {
    w.Logits();
  }
  w.AllReduce("embedding_ar", 1.0);
  w.P2P();
}

}  // namespace

Result<ModelGraph> BuildLlama(const GraphInput& input) { return WriteBoth(input, WriteLlama); }

Result<ModelGraph> BuildMoe(const GraphInput& input) {
  DYNO_TRY_VOID(CheckExpertBlocks(input));
  return WriteBoth(input, WriteMoe);
}

}  // namespace dynosim::timing
