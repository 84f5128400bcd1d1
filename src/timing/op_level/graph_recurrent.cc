// SPDX-License-Identifier: Apache-2.0
// Hybrids of linear attention or state-space layers with full attention: Qwen3.5 and Nemotron-H.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/result.h"
#include "timing/op_level/graph.h"
#include "timing/op_level/layer_pattern.h"
#include "timing/op_level/model_spec.h"
#include "timing/op_level/operation.h"
#include "timing/op_level/quantization.h"

namespace dynosim::timing {
namespace {

// GEMM modes of Qwen3.5: attention projections, dense feed-forward, shared expert.
struct QwenModes {
  std::string projection, dense, shared;
};

enum class QwenPart { kProjection, kShared, kDense, kOther };

QwenPart PartOf(std::string_view name) {
  const auto has = [name](std::string_view text) {
    return name.find(text) != std::string_view::npos;
  };
  if (has(".linear_attn.") || has(".self_attn.")) {
    return QwenPart::kProjection;
  }
  if (has("shared_expert")) {
    return QwenPart::kShared;
  }
  return has(".mlp.") && !IsRoutedExpert(name) ? QwenPart::kDense : QwenPart::kOther;
}

std::string ModeOfLayer(const std::string& algorithm) {
  if (algorithm == "fp8") {
    return "fp8_static";
  }
  if (algorithm == "mxfp8") {
    return "fp8";
  }
  return algorithm == "nvfp4" || algorithm == "w4a16_nvfp4" ? algorithm : "";
}

QwenModes FindQwenModes(const GraphInput& in) {
  const std::string& gemm = in.modes.gemm;
  QwenModes out{.projection = gemm, .dense = gemm, .shared = gemm};
  if (in.modes.gemm_set) {
    return out;
  }
  const auto place = [&out](QwenPart part) -> std::string* {
    return part == QwenPart::kProjection ? &out.projection
           : part == QwenPart::kShared   ? &out.shared
           : part == QwenPart::kDense    ? &out.dense
                                         : nullptr;
  };
  bool listed[3] = {};
  for (const Json* const section : {ExternalQuantization(in.model), QuantizationConfig(in.model)}) {
    const Json* const layers = section == nullptr ? nullptr : section->Find("quantized_layers");
    if (layers == nullptr || !layers->is_object()) {
      continue;
    }
    for (const Json::Member& layer : layers->object()) {
      const QwenPart part = PartOf(LowerCase(layer.first));
      const std::string mode = ModeOfLayer(LayerAlgorithm(layer.second));
      if (std::string* const target = place(part); target != nullptr && !mode.empty()) {
        *target = mode;
        listed[static_cast<int>(part)] = true;
      }
    }
  }
  for (const std::string& pattern : ExclusionPatterns(in.model)) {
    const std::string name = LowerCase(pattern);
    const bool attention = name.find("linear_attn") != std::string::npos ||
                           name.find("self_attn") != std::string::npos;
    const bool shared = name.find("shared_expert") != std::string::npos;
    if (attention && !listed[static_cast<int>(QwenPart::kProjection)]) {
      out.projection = "bfloat16";
    }
    if (shared && !listed[static_cast<int>(QwenPart::kShared)]) {
      out.shared = "bfloat16";
    }
    if (!shared && name.find(".mlp") != std::string::npos &&
        !listed[static_cast<int>(QwenPart::kDense)]) {
      out.dense = "bfloat16";
    }
  }
  return out;
}

class Qwen35Writer {
 public:
  Qwen35Writer(GraphWriter& writer, const GdnSizes& gdn, const QwenModes& modes)
      : w_(writer),
        m_(writer.model()),
        z_(gdn),
        modes_(modes),
        backend_(writer.in().platform.backend),
        sglang_(backend_ == "sglang"),
        // SGLang reduces in the exchange of tokens when attention is replicated.
        folded_(sglang_ && m_.experts > 0 && w_.in().layout.moe.attention_dp_size > 1) {}

  void Write() {
    w_.Embedding(m_.vocab / w_.tp());
    w_.AllReduce("embedding_ar", 1.0);
    LinearLayers();
    FullLayers();
    w_.Logits();
    w_.P2P();
  }

 private:
  void LinearLayers() {
    if (z_.layers == 0) {
      return;
    }
    const double count = ToDouble(z_.layers);
    const std::uint64_t values = z_.v_heads * z_.v_dim;
    w_.Norm("gdn_norm", count);
    w_.Gemm("gdn_in_proj_gemm", count, (2 * z_.k_heads * z_.k_dim + 2 * values) / w_.tp(),
            m_.hidden, modes_.projection);
    w_.Gemm("gdn_in_proj_ba_gemm", count, 2 * z_.v_heads / w_.tp(), m_.hidden, modes_.projection,
            {.below_grid_sol = true});
    Kernel("gdn_conv1d", count, w_.context() ? "causal_conv1d_fn" : "causal_conv1d_update");
    if (w_.context()) {
      Kernel("gdn_scan", count, "chunk_gated_delta_rule");
    } else {
      Kernel("gdn_recurrence", count, "fused_sigmoid_gating_delta_rule_update");
    }
    w_.Gemm("gdn_out_proj_gemm", count, m_.hidden, values / w_.tp(), modes_.projection,
            {.low_precision_input = true});
    if (!folded_) {
      w_.AllReduce("gdn_ar", count);
    }
    FeedForward("gdn_", count);
  }
  void Kernel(std::string_view name, double count, std::string_view kernel) {
    w_.Add(name, count,
           LinearAttentionOp{.kernel_source = std::string(kernel),
                             .phase = w_.context() ? "context" : "generation",
                             .d_model = m_.hidden,
                             .d_conv = z_.conv,
                             .num_k_heads = z_.k_heads / w_.tp(),
                             .head_k_dim = z_.k_dim,
                             .num_v_heads = z_.v_heads / w_.tp(),
                             .head_v_dim = z_.v_dim,
                             .mamba_ssm_dtype = z_.ssm_dtype});
  }

  void FullLayers() {
    if (z_.layers == m_.layers) {
      return;
    }
    const double count = ToDouble(m_.layers - z_.layers);
    const std::uint64_t heads = m_.heads / w_.tp();
    w_.Norm("full_attn_norm", count);
    // The query part is doubled by the output gate.
    w_.Gemm("qkv_gemm", count, 2 * heads * m_.head_dim + 2 * w_.kv_heads_per_gpu() * m_.head_dim,
            m_.hidden, modes_.projection);
    w_.Attention("attention", count,
                 {.heads = heads,
                  .kv_heads = w_.kv_heads_per_gpu(),
                  .head_dim = m_.head_dim,
                  .qk_norm = true});
    w_.Gemm("proj_gemm", count, m_.hidden, heads * m_.head_dim, modes_.projection,
            {.low_precision_input = true});
    if (!folded_) {
      w_.AllReduce("full_ar", count);
    }
    FeedForward("full_", count);
  }

  void FeedForward(const std::string& p, double count) {
    w_.Norm(p + "ffn_norm", count);
    if (m_.experts == 0) {
      const std::uint64_t inner = m_.inter / w_.tp();
      w_.Gemm(p + "gate_ffn1_gemm", count, 2 * m_.inter / w_.tp(), m_.hidden, modes_.dense);
      w_.Elementwise(p + "act_gate", count, 2 * m_.inter / w_.tp(), inner);
      w_.Gemm(p + "ffn2_gemm", count, m_.hidden, inner, modes_.dense,
              {.low_precision_input = true});
      w_.AllReduce(p + "ffn_ar", count);
    } else if (w_.context()) {
      Router(p, count);
      Pre(p, count);
      Experts(p, count);
      Post(p, count);
      Shared(p, count);
      Merge(p, count);
    } else {
      GenerationExperts(p, count);
    }
  }

  void GenerationExperts(const std::string& p, double count) {
    if (backend_ == "sglang") {
      Pre(p, count);
    }
    const auto routed = [&] {
      Router(p, count);
      if (backend_ != "sglang") {
        Pre(p, count);
      }
      Experts(p, count);
    };
    if (backend_ == "trtllm" || SharedWidth() == 0) {
      routed();
      Shared(p, count);
    } else {
      auto a = w_.Group(routed);
      auto b = w_.Group([&] { Shared(p, count); });
      w_.Add(p + "moe_overlap", 1.0, OverlapOp{.group_a = std::move(a), .group_b = std::move(b)});
    }
    Merge(p, count);
    Post(p, count);
  }

  DispatchShape Dispatch() const {
    return {.hidden = m_.hidden,
            .quant = w_.in().modes.moe,
            .attn_ar_modeled = true,
            .is_context = w_.context(),
            .sms = 20,
            .context_scale = w_.tp()};
  }
  std::uint64_t SharedWidth() const { return m_.WholeOr("shared_expert_intermediate_size", 0); }

  void Router(const std::string& p, double count) {
    constexpr std::uint64_t kRoutedByGemm = 128;
    if (m_.experts >= kRoutedByGemm) {
      w_.Gemm(p + "router_gemm", count, m_.experts, m_.hidden, "bfloat16");
    }
  }
  void Pre(const std::string& p, double count) {
    if (!sglang_ || w_.in().layout.moe.attention_dp_size > 1) {
      w_.PreDispatch(p + "moe_pre_dispatch", count, Dispatch());
    }
  }
  void Experts(const std::string& p, double count) {
    MoeOp experts = w_.ExpertsOfModel("power_law_1.2");
    experts.is_context = w_.context();
    w_.Experts(p + "moe", count, experts);
  }
  void Post(const std::string& p, double count) {
    w_.PostDispatch(p + "moe_post_dispatch", count, Dispatch());
  }
  void Shared(const std::string& p, double count) {
    const std::uint64_t width = SharedWidth();
    if (width == 0) {
      return;
    }
    if (!sglang_) {
      w_.Gemm(p + "shared_expert_gate_gemm", count, 1, m_.hidden, "bfloat16",
              {.below_grid_sol = true});
    }
    w_.Gemm(p + "shared_gate_up_gemm", count, 2 * width / w_.tp(), m_.hidden, modes_.shared);
    w_.Elementwise(p + "shared_act_gate", count, 2 * width / w_.tp(), width / w_.tp());
    w_.Gemm(p + "shared_down_gemm", count, m_.hidden, width / w_.tp(), modes_.shared,
            {.low_precision_input = true});
    if (!sglang_) {
      w_.Elementwise(p + "shared_expert_gate_mul", count, m_.hidden, m_.hidden);
    }
  }
  void Merge(const std::string& p, double count) {
    if (SharedWidth() > 0) {
      w_.Elementwise(p + "shared_merge", count, (sglang_ ? 3 : 2) * m_.hidden, m_.hidden);
    }
  }

  GraphWriter& w_;
  const ModelSpec& m_;
  const GdnSizes& z_;
  const QwenModes& modes_;
  std::string backend_;
  bool sglang_, folded_;
};

struct MambaSizes {
  std::uint64_t heads = 0, dim = 0, state = 0, conv = 0, groups = 0, chunk = 0;
};

Result<MambaSizes> FindMambaSizes(const ModelSpec& m) {
  MambaSizes out;
  DYNO_TRY(out.heads, m.Need("mamba_num_heads"));
  DYNO_TRY(out.dim, m.Need("mamba_head_dim"));
  DYNO_TRY(out.state, m.Need("ssm_state_size"));
  DYNO_TRY(out.conv, m.Need("conv_kernel"));
  DYNO_TRY(out.groups, m.Need("n_groups"));
  DYNO_TRY(out.chunk, m.Need("chunk_size"));
  return out;
}

class NemotronHWriter {
 public:
  NemotronHWriter(GraphWriter& writer, const MambaPattern& pattern, const MambaSizes& sizes)
      : w_(writer),
        m_(writer.model()),
        pattern_(pattern),
        z_(sizes),
        mode_(writer.in().modes.gemm) {}

  void Write() {
    w_.Embedding(m_.vocab);
    if (pattern_.mamba > 0) {
      MambaLayers(ToDouble(pattern_.mamba));
    }
    if (pattern_.attention > 0) {
      AttentionLayers(ToDouble(pattern_.attention));
    }
    if (pattern_.experts > 0) {
      ExpertLayers(ToDouble(pattern_.experts));
    }
    if (pattern_.dense > 0) {
      DenseLayers(ToDouble(pattern_.dense));
    }
    w_.P2P();
    w_.Logits();
  }

 private:
  void MambaLayers(double count) {
    const std::uint64_t heads = z_.heads / w_.tp();
    const std::uint64_t inner = heads * z_.dim;
    const std::uint64_t groups = std::max<std::uint64_t>(z_.groups / w_.tp(), 1);
    w_.Norm("mamba_norm", count);
    w_.Gemm("mamba_in_proj_gemm", count, 2 * inner + 2 * groups * z_.state + heads, m_.hidden,
            mode_);
    Kernel("mamba_conv1d", count, w_.context() ? "causal_conv1d_fn" : "causal_conv1d_update");
    Kernel("mamba_ssm", count,
           w_.context() ? "mamba_chunk_scan_combined" : "selective_state_update");
    w_.Gemm("mamba_out_proj_gemm", count, m_.hidden, inner, mode_);
    w_.AllReduce("mamba_ar", count);
  }
  // The kernels are measured for the whole model; splitting it does not make them cheaper.
  void Kernel(std::string_view name, double count, std::string_view kernel) {
    w_.Add(name, count,
           Mamba2Op{.kernel_source = std::string(kernel),
                    .phase = w_.context() ? "context" : "generation",
                    .d_model = m_.hidden,
                    .d_state = z_.state,
                    .d_conv = z_.conv,
                    .nheads = z_.heads,
                    .head_dim = z_.dim,
                    .n_groups = z_.groups,
                    .chunk_size = z_.chunk});
  }

  void AttentionLayers(double count) {
    const std::uint64_t out = m_.heads * m_.head_dim / w_.tp();
    w_.Norm("attn_norm", count);
    w_.Gemm("qkv_gemm", count, out + 2 * m_.head_dim * w_.kv_heads_per_gpu(), m_.hidden, mode_);
    w_.Attention(
        "attention", count,
        {.heads = m_.heads / w_.tp(), .kv_heads = w_.kv_heads_per_gpu(), .head_dim = m_.head_dim});
    w_.Gemm("proj_gemm", count, m_.hidden, out, mode_, {.low_precision_input = true});
    w_.AllReduce("attn_ar", count);
  }

  void ExpertLayers(double count) {
    const std::uint64_t shared = m_.WholeOr("moe_shared_expert_intermediate_size", 0) / w_.tp();
    const std::uint64_t latent = m_.WholeOr("moe_latent_size", 0);
    const std::uint64_t width = latent > 0 ? latent : m_.hidden;
    w_.Norm("moe_norm", count);
    w_.Gemm("shared_up_gemm", count, shared, m_.hidden, mode_);
    w_.Elementwise("shared_relu2", count, shared, shared);
    w_.Gemm("shared_down_gemm", count, m_.hidden, shared, mode_, {.low_precision_input = true});
    w_.Gemm("router_gemm", count, m_.experts, m_.hidden, "bfloat16");
    if (latent > 0) {
      w_.Gemm("fc1_latent_proj_gemm", count, latent / w_.tp(), m_.hidden, mode_);
    }
    const DispatchShape dispatch{.hidden = width, .quant = w_.in().modes.moe};
    MoeOp experts = w_.ExpertsOfModel("power_law_1.01");
    experts.hidden_size = width;
    experts.is_gated = false;
    w_.PreDispatch("moe_pre_dispatch", count, dispatch);
    w_.Experts("moe", count, experts);
    w_.PostDispatch("moe_post_dispatch", count, dispatch);
    if (latent > 0) {
      w_.Gemm("fc2_latent_proj_gemm", count, m_.hidden, latent / w_.tp(), mode_,
              {.low_precision_input = true});
    }
    w_.AllReduce("moe_ar", count);
  }

  void DenseLayers(double count) {
    const std::uint64_t inner = m_.inter / w_.tp();
    w_.Norm("mlp_norm", count);
    w_.Gemm("mlp_up_gemm", count, inner, m_.hidden, mode_);
    w_.Elementwise("mlp_relu2", count, inner, inner);
    w_.Gemm("mlp_down_gemm", count, m_.hidden, inner, mode_);
    w_.AllReduce("mlp_ar", count);
  }

  GraphWriter& w_;
  const ModelSpec& m_;
  const MambaPattern& pattern_;
  const MambaSizes& z_;
  const std::string& mode_;
};

}  // namespace

Result<ModelGraph> BuildQwen35(const GraphInput& input) {
  DYNO_TRY(const GdnSizes sizes, FindGdnSizes(input.model));
  if (sizes.k_heads % input.layout.tp != 0 || sizes.v_heads % input.layout.tp != 0) {
    return UsageError(
        "", fmt::format("linear attention heads must be divisible by the tensor width: {} key "
                        "heads, {} value heads, tp_size {}",
                        sizes.k_heads, sizes.v_heads, input.layout.tp));
  }
  const QwenModes modes = FindQwenModes(input);
  return WriteBoth(input, [&](GraphWriter& w) { Qwen35Writer(w, sizes, modes).Write(); });
}

Result<ModelGraph> BuildNemotronH(const GraphInput& input) {
  DYNO_TRY(const MambaPattern pattern, FindMambaPattern(input.model));
  DYNO_TRY(const MambaSizes sizes, FindMambaSizes(input.model));
  return WriteBoth(input, [&](GraphWriter& w) { NemotronHWriter(w, pattern, sizes).Write(); });
}

}  // namespace dynosim::timing
