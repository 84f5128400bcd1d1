// SPDX-License-Identifier: Apache-2.0
// DeepSeek-V3, DeepSeek-R1 and Kimi-K2.5: latent attention as one module or as its kernels, a
// shared expert beside the routed ones. Every layer counts as an expert layer.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "timing/op_level/graph.h"
#include "timing/op_level/model_spec.h"
#include "timing/op_level/operation.h"
#include "timing/op_level/quantization.h"

namespace dynosim::timing {
namespace {

// Widths of the latent projections.
constexpr std::uint64_t kDown = 2112, kQueryRank = 1536, kKvRank = 512;
constexpr std::uint64_t kQueryDim = 192, kKvDim = 256, kValueDim = 128;
// Heads that the measured attention kernels have in all.
constexpr std::uint64_t kKernelHeads = 128;

bool Mentions(std::string_view pattern, std::initializer_list<std::string_view> markers) {
  for (const std::string_view marker : markers) {
    if (pattern.find(marker) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

// Projections that the checkpoint leaves unquantized stay in bfloat16.
struct LatentModes {
  std::string down, q, kv, o;
  bool uniform() const { return q == kv && kv == o; }
};

LatentModes FindLatentModes(const GraphInput& in) {
  bool q = false, kv = false, o = false;
  for (const std::string& pattern : ExclusionPatterns(in.model)) {
    const bool of_q = Mentions(pattern, {"q_a_proj", "q_b_proj", "q_proj"});
    const bool of_kv = Mentions(pattern, {"kv_a_proj", "kv_b_proj", "kv_proj", "k_proj", "v_proj"});
    const bool of_o = Mentions(pattern, {"o_proj"});
    const bool all = !of_q && !of_kv && !of_o && Mentions(pattern, {"self_attn"});
    q = q || of_q || all;
    kv = kv || of_kv || all;
    o = o || of_o || all;
  }
  const std::string wide = "bfloat16";
  const std::string& gemm = in.modes.gemm;
  return {.down = q && kv ? wide : gemm,
          .q = q ? wide : gemm,
          .kv = kv ? wide : gemm,
          .o = o ? wide : gemm};
}

class DeepSeekWriter {
 public:
  DeepSeekWriter(GraphWriter& writer, const LatentModes& latent)
      : w_(writer), m_(writer.model()), latent_(latent), layers_(static_cast<double>(m_.layers)) {}

  void Write() {
    w_.Embedding(m_.vocab);
    w_.Norm("add_norm_1", layers_);
    Attention();
    w_.Norm("add_norm_2", layers_);
    if (w_.context()) {
      Shared();
      Routed();
    } else {
      auto routed = w_.Group([this] { Routed(); });
      auto shared = w_.Group([this] { Shared(); });
      w_.Add("moe_overlap", 1.0,
             OverlapOp{.group_a = std::move(routed), .group_b = std::move(shared)});
    }
    w_.Logits();
    if (Vllm()) {
      w_.AllReduce("tp_allreduce", 2.0 * layers_);
    }
    w_.P2P();
  }

 private:
  bool Vllm() const { return w_.in().platform.backend == "vllm"; }

  void Attention() {
    if (!latent_.uniform()) {
      Kernels(false);
      return;
    }
    auto list = w_.Group([this] { Kernels(true); });
    auto module = w_.Group([this] {
      w_.Add("mla_module", layers_,
             MlaModuleOp{.context = w_.context(),
                         .num_heads = m_.heads / w_.tp(),
                         .kv_cache_dtype = w_.in().modes.kv,
                         .fmha_quant_mode = w_.in().modes.fmha,
                         .gemm_quant_mode = latent_.q,
                         .native_num_heads = m_.heads});
    });
    w_.Add("mla_block", 1.0, FallbackOp{.primary = std::move(module), .list = std::move(list)});
  }

  void Kernels(bool substitute) {
    const std::uint64_t heads = m_.heads / w_.tp();
    w_.Gemm("downscale_gemm", layers_, kDown, m_.hidden, latent_.down);
    w_.Gemm("q_b_proj_gemm", layers_, m_.heads * kQueryDim / w_.tp(), kQueryRank, latent_.q);
    if (w_.context()) {
      w_.Gemm("kv_b_proj_gemm", layers_, m_.heads * kKvDim / w_.tp(), kKvRank, latent_.kv);
    }
    if (Vllm()) {
      w_.Attention("attention", layers_,
                   {.heads = heads,
                    .kv_heads = m_.kv_heads / w_.tp(),
                    .head_dim = m_.Whole({"v_head_dim"}).value_or(m_.head_dim),
                    .default_lane = substitute});
    } else if (w_.context()) {
      w_.Add("attention", layers_,
             ContextMlaOp{.num_heads = kKernelHeads / w_.tp(),
                          .kv_cache_dtype = w_.in().modes.kv,
                          .fmha_quant_mode = w_.in().modes.fmha});
    } else {
      Bmm("bmm_pre", heads, true);
      w_.Add(
          "attention", layers_,
          GenerationMlaOp{.num_heads = kKernelHeads / w_.tp(), .kv_cache_dtype = w_.in().modes.kv});
      Bmm("bmm_post", heads, false);
    }
    w_.Gemm("proj_gemm", layers_, m_.hidden, m_.heads * kValueDim / w_.tp(), latent_.o);
  }
  void Bmm(std::string_view name, std::uint64_t heads, bool pre) {
    w_.Add(name, layers_,
           MlaBmmOp{.num_heads = heads,
                    .quant_mode = latent_.kv == "bfloat16" ? "bfloat16" : "fp8",
                    .is_pre = pre});
  }

  void Shared() {
    const std::string mode = SharedExpertMode(w_.in());
    const std::uint64_t wide = 2 * m_.moe_inter / w_.tp();
    const std::uint64_t inner = m_.moe_inter / w_.tp();
    w_.Gemm("shared_gate_up_gemm", layers_, wide, m_.hidden, mode);
    w_.Elementwise("shared_act_gate", layers_, wide, inner);
    w_.Gemm("shared_ffn2_gemm", layers_, m_.hidden, inner, mode);
  }
  void Routed() {
    const DispatchShape dispatch{
        .hidden = m_.hidden, .quant = w_.in().modes.moe, .is_context = w_.context()};
    w_.Gemm("router_gemm", layers_, m_.experts, m_.hidden, "bfloat16");
    w_.PreDispatch("moe_pre_dispatch", layers_, dispatch);
    w_.Experts("moe", layers_, w_.ExpertsOfModel("power_law_1.01"));
    w_.PostDispatch("moe_post_dispatch", layers_, dispatch);
  }

  GraphWriter& w_;
  const ModelSpec& m_;
  const LatentModes& latent_;
  double layers_;
};

}  // namespace

Result<ModelGraph> BuildDeepSeek(const GraphInput& input) {
  const LatentModes latent = FindLatentModes(input);
  return WriteBoth(input,
                   [&latent](GraphWriter& writer) { DeepSeekWriter(writer, latent).Write(); });
}

}  // namespace dynosim::timing
