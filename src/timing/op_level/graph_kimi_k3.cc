// SPDX-License-Identifier: Apache-2.0
// Kimi-K3: Kimi delta attention and latent attention layers, experts in a latent space, and a dense
// draft model for speculation.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "timing/op_level/graph.h"
#include "timing/op_level/layer_pattern.h"
#include "timing/op_level/model_spec.h"
#include "timing/op_level/operation.h"

namespace dynosim::timing {
namespace {

struct LatentSizes {
  std::uint64_t q_rank = 0, kv_rank = 0, nope = 0, rope = 0, value = 0;
};

Result<LatentSizes> FindLatentSizes(const ModelSpec& m) {
  LatentSizes out;
  DYNO_TRY(out.q_rank, m.Need("q_lora_rank"));
  DYNO_TRY(out.kv_rank, m.Need("kv_lora_rank"));
  DYNO_TRY(out.nope, m.Need("qk_nope_head_dim"));
  DYNO_TRY(out.rope, m.Need("qk_rope_head_dim"));
  DYNO_TRY(out.value, m.Need("v_head_dim"));
  return out;
}

class KimiK3Writer {
 public:
  KimiK3Writer(GraphWriter& writer, const KdaSizes& kda, const LatentSizes& latent)
      : w_(writer),
        m_(writer.model()),
        kda_(kda),
        z_(latent),
        mode_(writer.in().modes.gemm),
        vllm_(writer.in().platform.backend == "vllm"),
        drafts_(writer.in().nextn) {}

  void Write() {
    w_.DoNotScaleGeneration();
    w_.Embedding(m_.vocab / w_.tp());
    w_.AllReduce("embedding_ar", 1.0);
    DeltaLayers();
    LatentLayers();
    const double layers = ToDouble(m_.layers);
    if (m_.WholeOr("attn_res_block_size", 0) > 0) {
      w_.Elementwise("attn_res", 2.0 * layers, 4 * m_.hidden, 2 * m_.hidden);
    }
    w_.Norm("ffn_norm", layers);
    DenseLayers();
    ExpertLayers();
    w_.Logits();
    w_.P2P();
    if (!w_.context() && drafts_ > 0) {
      Draft();
    }
  }

 private:
  void DeltaLayers() {
    const double count = ToDouble(kda_.layers);
    const std::uint64_t inner = kda_.heads / w_.tp() * kda_.dim;
    w_.Norm("kda_norm", count);
    w_.Gemm("kda_qkvg_gemm", count, 4 * inner, m_.hidden, mode_);
    w_.Gemm("kda_bfa_gemm", count, kda_.heads + kda_.dim, m_.hidden, mode_);
    w_.Gemm("kda_fb_gemm", count, inner, kda_.dim, mode_);
    DeltaKernels(count);
    if (w_.context() || !vllm_ || drafts_ > 0) {
      w_.Elementwise("kda_onorm", count, 2 * inner, inner);
    }
    w_.Gemm("kda_o_gemm", count, m_.hidden, inner, mode_, {.low_precision_input = true});
    w_.AllReduce("kda_ar", count);
  }

  void DeltaKernels(double count) {
    if (w_.context()) {
      Kernel("kda_conv1d", count, "causal_conv1d_fn_qkv3", "context");
      Kernel("kda_scan", count, vllm_ ? "flashkda_fwd" : "chunk_kda", "context");
    } else if (drafts_ > 0) {
      Kernel("kda_conv1d", count, "causal_conv1d_update", "verify");
      Kernel("kda_verify", count,
             vllm_ ? "fused_recurrent_kda" : "fused_sigmoid_gating_delta_rule_update", "verify");
    } else if (vllm_) {
      Kernel("kda_fused_decode", count, "fused_kda_decode", "generation");
    } else {
      Kernel("kda_conv1d", count, "causal_conv1d_update", "generation");
      Kernel("kda_recurrent", count, "fused_recurrent_kda_packed_decode", "generation");
    }
  }
  void Kernel(std::string_view name, double count, std::string_view kernel,
              std::string_view phase) {
    const std::uint64_t heads = kda_.heads / w_.tp();
    w_.Add(name, count,
           LinearAttentionOp{.kda = true,
                             .kernel_source = std::string(kernel),
                             .phase = std::string(phase),
                             .d_model = m_.hidden,
                             .d_conv = kda_.conv,
                             .num_k_heads = heads,
                             .head_k_dim = kda_.dim,
                             .num_v_heads = heads,
                             .head_v_dim = kda_.dim,
                             .mamba_ssm_dtype = {},
                             .draft_tokens = phase == "verify" ? drafts_ + 1 : 0});
  }

  void LatentLayers() {
    if (kda_.layers == m_.layers) {
      return;
    }
    const double count = ToDouble(m_.layers - kda_.layers);
    const std::uint64_t out = m_.heads * z_.value / w_.tp();
    w_.Norm("mla_norm", count);
    w_.Gemm("mla_downscale_gemm", count, z_.q_rank + z_.kv_rank + z_.rope, m_.hidden, mode_);
    if (vllm_) {
      auto list = w_.Group([&] { LatentKernels(count); });
      auto module = w_.Group([&] {
        w_.Add("mla_module", count,
               MlaModuleOp{.context = w_.context(),
                           .num_heads = m_.heads / w_.tp(),
                           .kv_cache_dtype = w_.in().modes.kv,
                           .fmha_quant_mode = w_.in().modes.fmha,
                           .gemm_quant_mode = mode_,
                           .native_num_heads = m_.heads});
      });
      w_.Add("mla_block", 1.0, FallbackOp{.primary = std::move(module), .list = std::move(list)});
    } else {
      LatentKernels(count);
    }
    w_.Gemm("mla_gate_gemm", count, out, m_.hidden, mode_);
    w_.Elementwise("mla_gate_mul", count, 2 * out, out);
    w_.AllReduce("mla_ar", count);
  }

  void LatentKernels(double count) {
    const std::uint64_t heads = m_.heads / w_.tp();
    w_.Gemm("mla_q_b_gemm", count, m_.heads * (z_.nope + z_.rope) / w_.tp(), z_.q_rank, mode_);
    if (w_.context()) {
      w_.Gemm("mla_kv_b_gemm", count, m_.heads * (z_.nope + z_.value) / w_.tp(), z_.kv_rank, mode_);
    }
    if (vllm_) {
      w_.Attention("attention", count,
                   {.heads = heads,
                    .kv_heads = m_.kv_heads / w_.tp(),
                    .head_dim = z_.value,
                    .default_lane = true});
    } else if (w_.context()) {
      w_.Add("attention", count,
             ContextMlaOp{.num_heads = heads,
                          .kv_cache_dtype = w_.in().modes.kv,
                          .fmha_quant_mode = w_.in().modes.fmha});
    } else {
      Bmm("bmm_pre", count, true);
      w_.Add("attention", count,
             GenerationMlaOp{.num_heads = heads, .kv_cache_dtype = w_.in().modes.kv});
      Bmm("bmm_post", count, false);
    }
    w_.Gemm("mla_o_gemm", count, m_.hidden, m_.heads * z_.value / w_.tp(), mode_,
            {.low_precision_input = true});
  }
  void Bmm(std::string_view name, double count, bool pre) {
    w_.Add(name, count,
           MlaBmmOp{.num_heads = m_.heads / w_.tp(),
                    .quant_mode = mode_ == "bfloat16" ? "bfloat16" : "fp8",
                    .is_pre = pre});
  }

  std::uint64_t DenseCount() const {
    return std::min(m_.WholeOr("first_k_dense_replace", 0), m_.layers);
  }
  void DenseLayers() {
    const double count = ToDouble(DenseCount());
    if (DenseCount() == 0) {
      return;
    }
    const std::uint64_t inner = m_.inter / w_.tp();
    w_.Gemm("dense_gate_up_gemm", count, 2 * m_.inter / w_.tp(), m_.hidden, mode_);
    w_.Elementwise("dense_act_gate", count, 2 * m_.inter / w_.tp(), inner);
    w_.Gemm("dense_down_gemm", count, m_.hidden, inner, mode_, {.low_precision_input = true});
    w_.AllReduce("dense_ffn_ar", count);
  }

  void ExpertLayers() {
    if (DenseCount() == m_.layers) {
      return;
    }
    const double count = ToDouble(m_.layers - DenseCount());
    const std::uint64_t given = m_.WholeOr("routed_expert_hidden_size", 0);
    const std::uint64_t latent = given > 0 ? given : m_.hidden;
    const std::uint64_t shared = m_.WholeOr("num_shared_experts", 0) * m_.moe_inter;
    const DispatchShape dispatch{.hidden = latent, .quant = w_.in().modes.moe};
    MoeOp experts = w_.ExpertsOfModel("power_law_1.01");
    experts.hidden_size = latent;
    w_.Gemm("router_gemm", count, m_.experts, m_.hidden, "bfloat16");
    w_.Gemm("latent_down_gemm", count, latent, m_.hidden, "bfloat16");
    w_.Elementwise("latent_norm", count, 2 * latent, 2 * latent);
    w_.PreDispatch("moe_pre_dispatch", count, dispatch);
    w_.Experts("moe", count, experts);
    w_.PostDispatch("moe_post_dispatch", count, dispatch);
    w_.Gemm("latent_up_gemm", count, m_.hidden, latent, "bfloat16");
    if (shared > 0) {
      w_.Gemm("shared_gate_up_gemm", count, 2 * shared / w_.tp(), m_.hidden, "bfloat16");
      w_.Elementwise("shared_act_gate", count, 2 * shared / w_.tp(), shared / w_.tp());
      w_.Gemm("shared_down_gemm", count, m_.hidden, shared / w_.tp(), "bfloat16");
    }
  }

  // The draft model proposes `nextn` tokens per step, so each of its runs counts for a share of
  // one.
  void Draft() {
    constexpr double kLayers = 5.0;
    constexpr std::uint64_t kInner = 14336;
    const double each = ToDouble(drafts_) / ToDouble(drafts_ + 1);
    const double once = 1.0 / ToDouble(drafts_ + 1);
    const std::uint64_t inner = kInner / w_.tp();
    w_.DropPrefix();
    w_.Add("draft_embedding", each,
           EmbeddingOp{.vocab_size = m_.vocab / w_.tp(), .hidden_size = m_.hidden});
    w_.Norm("draft_norm", 2.0 * kLayers * each);
    const std::uint64_t kv_out =
        vllm_ ? DraftLatentAttention(kLayers * each) : DraftPlainAttention(kLayers * each);
    w_.Gemm("draft_gate_up_gemm", kLayers * each, 2 * kInner / w_.tp(), m_.hidden, mode_);
    w_.Elementwise("draft_act_gate", kLayers * each, 2 * kInner / w_.tp(), inner);
    w_.Gemm("draft_down_gemm", kLayers * each, m_.hidden, inner, mode_,
            {.low_precision_input = true});
    w_.AllReduce("draft_ar", 2.0 * kLayers * each);
    w_.Gemm("draft_kv_proj_gemm", kLayers * once, kv_out, m_.hidden, mode_);
    w_.Gemm("draft_logits_gemm", once, m_.vocab / w_.tp(), m_.hidden, "bfloat16");
  }
  std::uint64_t DraftLatentAttention(double count) {
    const std::uint64_t tp = w_.tp();
    w_.Gemm("draft_downscale_gemm", count, 2112, m_.hidden, mode_);
    w_.Gemm("draft_q_b_gemm", count, 12288 / tp, 1536, mode_);
    w_.Attention("draft_attention", count,
                 {.heads = 64 / tp, .kv_heads = 64 / tp, .head_dim = 128});
    w_.Gemm("draft_proj_gemm", count, m_.hidden, 8192 / tp, mode_, {.low_precision_input = true});
    return 576;
  }
  std::uint64_t DraftPlainAttention(double count) {
    const std::uint64_t tp = w_.tp();
    w_.Gemm("draft_qkv_gemm", count, 6144 / tp, m_.hidden, mode_);
    w_.Attention(
        "draft_attention", count,
        {.heads = 64 / tp, .kv_heads = std::max<std::uint64_t>(16 / tp, 1), .head_dim = 64});
    w_.Gemm("draft_proj_gemm", count, m_.hidden, 4096 / tp, mode_, {.low_precision_input = true});
    return 2048 / tp;
  }

  GraphWriter& w_;
  const ModelSpec& m_;
  const KdaSizes& kda_;
  const LatentSizes& z_;
  const std::string& mode_;
  bool vllm_;
  std::uint64_t drafts_;
};

}  // namespace

Result<ModelGraph> BuildKimiK3(const GraphInput& input) {
  DYNO_TRY(const KdaSizes kda, FindKdaSizes(input.model));
  if (kda.heads % input.layout.tp != 0) {
    return UsageError("", fmt::format("the {} linear attention heads are not divisible by tp_size "
                                      "{}",
                                      kda.heads, input.layout.tp));
  }
  DYNO_TRY(const LatentSizes latent, FindLatentSizes(input.model));
  return WriteBoth(input, [&](GraphWriter& w) { KimiK3Writer(w, kda, latent).Write(); });
}

}  // namespace dynosim::timing
