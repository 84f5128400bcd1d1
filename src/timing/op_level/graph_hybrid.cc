// SPDX-License-Identifier: Apache-2.0
// Transformers whose layers differ in their attention window and in dense or expert feed-forward:
// Llama-4, MiMo-V2, Step-3, Gemma-4, Muse-Glimmer. Layers of one kind are one group.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "timing/op_level/graph.h"
#include "timing/op_level/layer_pattern.h"
#include "timing/op_level/model_spec.h"
#include "timing/op_level/operation.h"
#include "timing/op_level/quantization.h"

namespace dynosim::timing {
namespace {

// Heads of the attention layers of one kind, undivided.
struct KindHeads {
  std::uint64_t heads = 0;
  std::uint64_t kv_heads = 0;
  std::uint64_t head_dim = 0;
  std::uint64_t value_dim = 0;
  std::uint64_t window = 0;
};

KindHeads HeadsOf(const ModelSpec& m, const LayerPattern& pattern, bool global) {
  KindHeads out{.heads = m.heads,
                .kv_heads = m.kv_heads,
                .head_dim = m.head_dim,
                .value_dim = m.Whole({"v_head_dim"}).value_or(m.head_dim),
                .window = 0};
  if (global) {
    return out;
  }
  out.kv_heads = m.WholeOr("swa_num_key_value_heads", m.kv_heads);
  out.head_dim = m.WholeOr("swa_head_dim", m.head_dim);
  out.value_dim = m.WholeOr("swa_v_head_dim", m.head_dim);
  out.window = pattern.window;
  // Step-3 keeps the sizes of its sliding layers in an object of their own.
  const Json* const other = m.text.Find("attention_other_setting");
  if (m.family == Family::kStep3p7 && other != nullptr && other->is_object()) {
    out.heads = WholeNumber(other->Find("num_attention_heads")).value_or(out.heads);
    out.head_dim = WholeNumber(other->Find("head_dim")).value_or(out.head_dim);
    out.value_dim = out.head_dim;
  }
  return out;
}

class HybridWriter {
 public:
  HybridWriter(GraphWriter& writer, const LayerPattern& pattern)
      : w_(writer), m_(writer.model()), pattern_(pattern), mode_(writer.in().modes.gemm) {}

  void Write() {
    w_.Embedding(m_.vocab);
    Layers(true, true);
    Layers(false, true);
    Layers(false, false);
    Layers(true, false);
    w_.Logits();
    w_.P2P();
    SharedExpert();
  }

 private:
  void Layers(bool global, bool experts) {
    const double count = ToDouble(pattern_.Count(global, experts));
    if (count == 0.0) {
      return;
    }
    const std::string kind = global ? "global" : "swa";
    const std::string prefix = experts ? kind : kind + "_dense";
    Attention(prefix, count, HeadsOf(m_, pattern_, global));
    if (experts) {
      Experts(prefix, count);
    } else {
      Dense(prefix, kind, count);
    }
  }

  void Attention(const std::string& prefix, double count, const KindHeads& z) {
    const std::uint64_t heads = z.heads / w_.tp();
    const std::uint64_t kv = CeilDiv(z.kv_heads, w_.tp());
    const std::uint64_t out = z.heads * z.value_dim / w_.tp();
    w_.Norm(prefix + "_attn_norm", count);
    w_.Gemm(prefix + "_qkv_gemm", count,
            z.heads * z.head_dim / w_.tp() + kv * (z.head_dim + z.value_dim), m_.hidden, mode_);
    w_.Attention("attention", count,
                 {.heads = heads,
                  .kv_heads = kv,
                  .head_dim = z.head_dim,
                  .window = z.window,
                  .qk_norm = m_.qk_norm});
    const Json* const gate = m_.text.Find("use_head_wise_attn_gate");
    if (m_.family == Family::kStep3p7 && gate != nullptr && gate->is_bool() && gate->boolean()) {
      w_.Gemm(prefix + "_attn_gate_gemm", count, heads, m_.hidden, mode_);
      w_.Elementwise(prefix + "_attn_gate", count, out + heads, out);
    }
    w_.Gemm(prefix + "_proj_gemm", count, m_.hidden, out, mode_, {.low_precision_input = true});
  }

  void Experts(const std::string& prefix, double count) {
    const DispatchShape dispatch{.hidden = m_.hidden, .quant = "bfloat16"};
    w_.Norm(prefix + "_moe_norm", count);
    w_.Gemm(prefix + "_router_gemm", count, m_.experts, m_.hidden, "bfloat16");
    w_.PreDispatch(prefix + "_moe_pre_dispatch", count, dispatch);
    w_.Experts(prefix + "_moe", count, w_.ExpertsOfModel("power_law_1.01"));
    w_.PostDispatch(prefix + "_moe_post_dispatch", count, dispatch);
  }

  void Dense(const std::string& prefix, const std::string& kind, double count) {
    const std::uint64_t inner = m_.Whole({"intermediate_size_mlp"}).value_or(m_.inter) / w_.tp();
    w_.Norm(prefix + "_ffn_norm", count);
    FeedForward(kind + "_dense", count, inner);
  }

  void FeedForward(const std::string& prefix, double count, std::uint64_t inner) {
    w_.Gemm(prefix + "_gate_up_gemm", count, 2 * inner, m_.hidden, mode_);
    w_.Elementwise(prefix + "_act", count, 2 * inner, inner);
    w_.Gemm(prefix + "_down_gemm", count, m_.hidden, inner, mode_, {.low_precision_input = true});
  }

  // Only the outer configuration is read for it.
  void SharedExpert() {
    const std::uint64_t width = WholeNumber(m_.root.Find("share_expert_dim")).value_or(0);
    const std::uint64_t layers = pattern_.Count(true, true) + pattern_.Count(false, true);
    if (m_.family == Family::kStep3p7 && width > 0 && layers > 0) {
      FeedForward("shared_expert_dense", ToDouble(layers), width / w_.tp());
    }
  }

  GraphWriter& w_;
  const ModelSpec& m_;
  const LayerPattern& pattern_;
  const std::string& mode_;
};

// Modes of Gemma-4 where the checkpoint leaves parts unquantized.
struct Gemma4Modes {
  std::string projection, shared, routed;
};

Gemma4Modes FindGemma4Modes(const GraphInput& in) {
  Gemma4Modes out{.projection = in.modes.gemm, .shared = in.modes.gemm, .routed = in.modes.moe};
  if (in.modes.gemm_set) {
    return out;
  }
  for (const std::string& pattern : ExclusionPatterns(in.model)) {
    const std::string name = LowerCase(pattern);
    if (name.find("self_attn") != std::string::npos) {
      out.projection = "bfloat16";
    }
    if (name.find(".mlp") != std::string::npos) {
      out.shared = "bfloat16";
      out.routed = "bfloat16";
    }
  }
  return out;
}

class Gemma4Writer {
 public:
  Gemma4Writer(GraphWriter& writer, const LayerPattern& pattern, const Gemma4Modes& modes)
      : w_(writer), m_(writer.model()), pattern_(pattern), modes_(modes) {}

  void Write() {
    const Gemma4Heads global = FindGemma4Heads(m_);
    const Json* const shared_kv = m_.text.Find("attention_k_eq_v");
    const bool one_projection =
        shared_kv != nullptr && shared_kv->is_bool() && shared_kv->boolean();
    w_.Embedding(m_.vocab);
    Layers("swa", pattern_.sliding(), CeilDiv(m_.kv_heads, w_.tp()), m_.head_dim, pattern_.window,
           2);
    Layers("global", pattern_.global(), CeilDiv(global.global_kv_heads, w_.tp()),
           global.global_head_dim, 0, one_projection ? 1 : 2);
    w_.Logits();
    w_.P2P();
  }

 private:
  void Layers(const std::string& kind, std::uint64_t layers, std::uint64_t kv, std::uint64_t dim,
              std::uint64_t window, std::uint64_t kv_projections) {
    if (layers == 0) {
      return;
    }
    const double count = ToDouble(layers);
    const std::uint64_t inner = m_.inter / w_.tp();
    const std::uint64_t out = m_.heads * dim / w_.tp();
    w_.Norm(kind + "_attn_norm", count);
    w_.Gemm(kind + "_qkv_gemm", count, out + kv_projections * kv * dim, m_.hidden,
            modes_.projection);
    w_.Attention("attention", count,
                 {.heads = m_.heads / w_.tp(), .kv_heads = kv, .head_dim = dim, .window = window});
    w_.Gemm(kind + "_proj_gemm", count, m_.hidden, out, modes_.projection,
            {.low_precision_input = true});
    w_.Norm(kind + "_ffn_norm", count);
    w_.Gemm(kind + "_shared_mlp_gate_up_gemm", count, 2 * inner, m_.hidden, modes_.shared);
    w_.Elementwise(kind + "_shared_mlp_act", count, 2 * inner, inner);
    w_.Gemm(kind + "_shared_mlp_down_gemm", count, m_.hidden, inner, modes_.shared,
            {.low_precision_input = true});
    if (m_.experts > 0 && m_.topk > 0) {
      Experts(kind, count);
    }
  }

  void Experts(const std::string& kind, double count) {
    constexpr std::uint64_t kRoutedByGemm = 128;
    if (m_.experts >= kRoutedByGemm) {
      w_.Gemm(kind + "_router_gemm", count, m_.experts, m_.hidden, "bfloat16");
    }
    const DispatchShape dispatch{.hidden = m_.hidden, .quant = modes_.routed};
    MoeOp experts = w_.ExpertsOfModel("power_law_1.01");
    experts.quant_mode = modes_.routed;
    w_.PreDispatch(kind + "_moe_pre_dispatch", count, dispatch);
    w_.Experts(kind + "_moe", count, experts);
    w_.PostDispatch(kind + "_moe_post_dispatch", count, dispatch);
  }

  GraphWriter& w_;
  const ModelSpec& m_;
  const LayerPattern& pattern_;
  const Gemma4Modes& modes_;
};

void WriteGlimmerLayers(GraphWriter& w, const std::string& kind, std::uint64_t layers,
                        std::uint64_t window) {
  if (layers == 0) {
    return;
  }
  const ModelSpec& m = w.model();
  const double count = ToDouble(layers);
  const std::string& mode = w.in().modes.gemm;
  const std::uint64_t out = m.heads * m.head_dim / w.tp();
  const std::uint64_t inner = m.inter / w.tp();
  w.Norm(kind + "_attn_norm", count);
  w.Gemm(kind + "_qkv_gemm", count, out + 2 * m.head_dim * w.kv_heads_per_gpu(), m.hidden, mode);
  w.Attention("attention", count,
              {.heads = m.heads / w.tp(),
               .kv_heads = w.kv_heads_per_gpu(),
               .head_dim = m.head_dim,
               .window = window,
               .qk_norm = true,
               .rope = kind != "global"});
  w.Gemm(kind + "_gate_gemm", count, out, m.hidden, mode);
  w.Elementwise(kind + "_gate_mul", count, 2 * out, out);
  w.Gemm(kind + "_proj_gemm", count, m.hidden, out, mode, {.low_precision_input = true});
  w.Norm(kind + "_ffn_norm", count);
  w.Gemm(kind + "_mlp_gate_up_gemm", count, 2 * inner, m.hidden, mode);
  w.Elementwise(kind + "_mlp_act", count, 2 * inner, inner);
  w.Gemm(kind + "_mlp_down_gemm", count, m.hidden, inner, mode, {.low_precision_input = true});
}

}  // namespace

Result<ModelGraph> BuildHybridMoe(const GraphInput& input) {
  DYNO_TRY_VOID(CheckExpertBlocks(input));
  DYNO_TRY(const LayerPattern pattern, FindLayerPattern(input.model));
  return WriteBoth(input, [&pattern](GraphWriter& w) { HybridWriter(w, pattern).Write(); });
}

Result<ModelGraph> BuildGemma4(const GraphInput& input) {
  DYNO_TRY(const LayerPattern pattern, FindLayerPattern(input.model));
  const Gemma4Modes modes = FindGemma4Modes(input);
  return WriteBoth(input, [&](GraphWriter& w) { Gemma4Writer(w, pattern, modes).Write(); });
}

Result<ModelGraph> BuildMuseGlimmer(const GraphInput& input) {
  DYNO_TRY(const LayerPattern pattern, FindLayerPattern(input.model));
  if (pattern.window == 0) {
    return UsageError(
        "", "the configuration of " + input.model.name + " must give a sliding_window above 0");
  }
  return WriteBoth(input, [&pattern](GraphWriter& w) {
    w.Embedding(w.model().vocab / w.tp());
    w.AllReduce("embedding_ar", 1.0);
    WriteGlimmerLayers(w, "swa", pattern.sliding(), pattern.window);
    WriteGlimmerLayers(w, "global", pattern.global(), 0);
    w.AllReduce("ar_1", ToDouble(w.model().layers));
    w.AllReduce("ar_2", ToDouble(w.model().layers));
    w.Logits();
    w.P2P();
  });
}

}  // namespace dynosim::timing
