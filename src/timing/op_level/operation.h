// SPDX-License-Identifier: Apache-2.0
// Operations: the kernels that one forward pass of a model launches, as plain values. An operation
// list is what a model, a parallel layout and a backend come down to; costs come later
// (op_timer.h). Sizes are per GPU unless said otherwise; data types are names of modes.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"

namespace dynosim::timing {

// A size or a count as a factor of a cost.
constexpr double ToDouble(std::uint64_t value) { return static_cast<double>(value); }

// Each kind names its fields once, for the JSON form of operation lists.
struct EmbeddingOp {
  static constexpr std::string_view kKind = "Embedding";
  std::uint64_t vocab_size = 0;
  std::uint64_t hidden_size = 0;
  template <class V>
  void Fields(V& v) const {
    v("vocab_size", vocab_size), v("hidden_size", hidden_size), v("quant_mode", "bfloat16");
    v("seq_split", 1);
  }
};

struct ElementwiseOp {
  static constexpr std::string_view kKind = "Elementwise";
  double bytes_per_token = 0.0;
  template <class V>
  void Fields(V& v) const {
    v("bytes_per_token", bytes_per_token), v("scale_num_tokens", 1), v("seq_split", 1);
  }
};

struct GemmOp {
  static constexpr std::string_view kKind = "Gemm";
  std::uint64_t n = 0;
  std::uint64_t k = 0;
  std::string quant_mode;
  bool low_precision_input = false;
  bool below_grid_sol = false;  // costs the least time where nothing is measured near
  template <class V>
  void Fields(V& v) const {
    v("n", n), v("k", k), v("quant_mode", quant_mode), v("scale_num_tokens", 1);
    v("low_precision_input", low_precision_input), v("seq_split", 1);
    v("below_grid_sol", below_grid_sol);
  }
};

struct ContextAttentionOp {
  static constexpr std::string_view kKind = "ContextAttention";
  std::uint64_t n = 0;
  std::uint64_t n_kv = 0;
  std::uint64_t head_size = 0;
  std::uint64_t window_size = 0;
  std::string kv_cache_dtype;
  std::string fmha_quant_mode;
  bool use_qk_norm = false;
  std::vector<std::string> lane_order;
  bool apply_rope = true;
  template <class V>
  void Fields(V& v) const {
    v("n", n), v("n_kv", n_kv), v("head_size", head_size), v("window_size", window_size);
    v("kv_cache_dtype", kv_cache_dtype), v("fmha_quant_mode", fmha_quant_mode);
    v("use_qk_norm", use_qk_norm), v("cp_size", 1), v("lane_order", lane_order);
    v("apply_rope", apply_rope), v("dcp_size", 1);
  }
};

struct GenerationAttentionOp {
  static constexpr std::string_view kKind = "GenerationAttention";
  std::uint64_t n = 0;
  std::uint64_t n_kv = 0;
  std::uint64_t head_size = 0;
  std::uint64_t window_size = 0;
  std::string kv_cache_dtype;
  std::vector<std::string> lane_order;
  bool use_qk_norm = false;
  template <class V>
  void Fields(V& v) const {
    v("n", n), v("n_kv", n_kv), v("head_size", head_size), v("window_size", window_size);
    v("kv_cache_dtype", kv_cache_dtype), v("lane_order", lane_order), v("use_qk_norm", use_qk_norm);
    v("scale_num_tokens", 1), v("verify_query_tokens", 0), v("dcp_size", 1);
  }
};

struct AllReduceOp {
  static constexpr std::string_view kKind = "CustomAllReduce";
  std::uint64_t hidden_size = 0;
  std::uint64_t tp_size = 1;
  template <class V>
  void Fields(V& v) const {
    v("hidden_size", hidden_size), v("tp_size", tp_size), v("quant", "half"), v("seq_split", 1);
  }
};

struct P2POp {
  static constexpr std::string_view kKind = "P2P";
  std::uint64_t pp_size = 1;
  std::uint64_t hidden_size = 0;
  template <class V>
  void Fields(V& v) const {
    v("pp_size", pp_size), v("hidden_size", hidden_size), v("seq_split", 1);
  }
};

// Widths over which the experts are spread, and the number of attention replicas.
struct MoeLayout {
  std::uint64_t moe_tp_size = 1;
  std::uint64_t moe_ep_size = 1;
  std::uint64_t attention_dp_size = 1;
};

struct MoeOp {
  static constexpr std::string_view kKind = "Moe";
  std::uint64_t hidden_size = 0;
  std::uint64_t inter_size = 0;  // of one expert, not divided
  std::uint64_t topk = 0;
  std::uint64_t num_experts = 0;
  MoeLayout layout;
  std::string quant_mode;
  std::string workload_distribution;
  bool is_gated = true;
  bool is_context = true;
  template <class V>
  void Fields(V& v) const {
    v("hidden_size", hidden_size), v("inter_size", inter_size), v("topk", topk);
    v("num_experts", num_experts), v("moe_tp_size", layout.moe_tp_size);
    v("moe_ep_size", layout.moe_ep_size), v("attention_dp_size", layout.attention_dp_size);
    v("quant_mode", quant_mode), v("workload_distribution", workload_distribution);
    v("is_gated", is_gated), v("moe_backend", nullptr), v("moe_kernel_source", nullptr);
    v("enable_eplb", false), v("is_context", is_context);
  }
};

struct MoeDispatchOp {
  static constexpr std::string_view kKind = "MoeDispatch";
  std::uint64_t hidden_size = 0;
  std::uint64_t topk = 0;
  std::uint64_t num_experts = 0;
  MoeLayout layout;
  bool pre_dispatch = true;
  bool attn_ar_modeled = false;  // the attention block has an all-reduce of its own
  std::string backend;
  std::string moe_quant;
  bool is_context = true;
  std::uint64_t sms = 12;
  std::uint64_t scale_num_tokens = 1;  // without effect
  template <class V>
  void Fields(V& v) const {
    v("hidden_size", hidden_size), v("topk", topk), v("num_experts", num_experts);
    v("moe_tp_size", layout.moe_tp_size), v("moe_ep_size", layout.moe_ep_size);
    v("attention_dp_size", layout.attention_dp_size), v("pre_dispatch", pre_dispatch);
    v("attn_ar_modeled", attn_ar_modeled), v("backend", backend);
    v("flavor", backend == "trtllm" ? "TrtllmAlltoall" : "CustomAllReduce"),
        v("comm_quant", "half");
    v("moe_quant", moe_quant), v("attn_cp_size", 1), v("is_context", is_context), v("sms", sms);
    v("scale_num_tokens", scale_num_tokens);
  }
};

// A whole latent-attention block as one measured module.
struct MlaModuleOp {
  bool context = true;
  std::uint64_t num_heads = 0;
  std::string kv_cache_dtype;
  std::string fmha_quant_mode;
  std::string gemm_quant_mode;
  std::uint64_t native_num_heads = 0;  // of the undivided model
  std::string_view Kind() const { return context ? "MlaModuleContext" : "MlaModuleGeneration"; }
  template <class V>
  void Fields(V& v) const {
    v("num_heads", num_heads), v("kv_cache_dtype", kv_cache_dtype);
    v("fmha_quant_mode", fmha_quant_mode), v("gemm_quant_mode", gemm_quant_mode);
    v("native_num_heads", native_num_heads), v("dcp_size", 1);
  }
};

struct ContextMlaOp {
  static constexpr std::string_view kKind = "ContextMla";
  std::uint64_t num_heads = 0;
  std::string kv_cache_dtype;
  std::string fmha_quant_mode;
  template <class V>
  void Fields(V& v) const {
    v("num_heads", num_heads), v("kv_cache_dtype", kv_cache_dtype);
    v("fmha_quant_mode", fmha_quant_mode), v("cp_size", 1), v("dcp_size", 1);
  }
};

struct GenerationMlaOp {
  static constexpr std::string_view kKind = "GenerationMla";
  std::uint64_t num_heads = 0;
  std::string kv_cache_dtype;
  template <class V>
  void Fields(V& v) const {
    v("num_heads", num_heads), v("kv_cache_dtype", kv_cache_dtype), v("dcp_size", 1);
  }
};

struct MlaBmmOp {
  static constexpr std::string_view kKind = "MlaBmm";
  std::uint64_t num_heads = 0;
  std::string quant_mode;
  bool is_pre = true;
  template <class V>
  void Fields(V& v) const {
    v("num_heads", num_heads), v("quant_mode", quant_mode), v("is_pre", is_pre);
  }
};

// Gated delta network (kind Gdn) and Kimi delta attention (kind Kda): linear attention kernels.
struct LinearAttentionOp {
  bool kda = false;
  std::string kernel_source;
  std::string phase;  // context, generation, verify
  std::uint64_t d_model = 0;
  std::uint64_t d_conv = 0;
  std::uint64_t num_k_heads = 0;
  std::uint64_t head_k_dim = 0;
  std::uint64_t num_v_heads = 0;
  std::uint64_t head_v_dim = 0;
  std::string mamba_ssm_dtype;     // Gdn only
  std::uint64_t draft_tokens = 0;  // Kda only
  std::string_view Kind() const { return kda ? "Kda" : "Gdn"; }
  template <class V>
  void Fields(V& v) const {
    v("kernel_source", kernel_source), v("phase", phase), v("d_model", d_model);
    v("d_conv", d_conv), v("num_k_heads", num_k_heads), v("head_k_dim", head_k_dim);
    v("num_v_heads", num_v_heads), v("head_v_dim", head_v_dim);
    kda ? v("draft_tokens", draft_tokens) : v("mamba_ssm_dtype", mamba_ssm_dtype);
  }
};

struct Mamba2Op {
  static constexpr std::string_view kKind = "Mamba2";
  std::string kernel_source;
  std::string phase;
  std::uint64_t d_model = 0;
  std::uint64_t d_state = 0;
  std::uint64_t d_conv = 0;
  std::uint64_t nheads = 0;
  std::uint64_t head_dim = 0;
  std::uint64_t n_groups = 0;
  std::uint64_t chunk_size = 0;
  template <class V>
  void Fields(V& v) const {
    v("kernel_source", kernel_source), v("phase", phase), v("d_model", d_model);
    v("d_state", d_state), v("d_conv", d_conv), v("nheads", nheads), v("head_dim", head_dim);
    v("n_groups", n_groups), v("chunk_size", chunk_size);
  }
};

// Modes of the projections around a sparse attention kernel.
struct ProjectionModes {
  std::string q, kv, o, indexer;
};

// DeepSeek sparse attention with its indexer, one module per layer.
struct DsaOp {
  bool context = true;
  std::uint64_t num_heads = 0;
  std::string kv_cache_dtype;
  std::string fmha_quant_mode;
  std::string gemm_quant_mode;
  std::string architecture;
  std::uint64_t index_topk = 2048;
  double full_frac = 1.0;  // share of layers that run the indexer
  ProjectionModes projections;
  std::string_view Kind() const { return context ? "DsaContext" : "DsaGeneration"; }
  template <class V>
  void Fields(V& v) const {
    v("num_heads", num_heads), v("kv_cache_dtype", kv_cache_dtype);
    v("fmha_quant_mode", fmha_quant_mode), v("gemm_quant_mode", gemm_quant_mode);
    v("architecture", architecture), v("index_topk", index_topk), v("cp_size", 1);
    v("full_frac", full_frac);
    Json modes;
    modes.Add("q", projections.q);
    modes.Add("kv", projections.kv);
    modes.Add("o", projections.o);
    modes.Add("indexer", projections.indexer);
    v("attn_projection_quant_modes", modes), v("dcp_size", 1);
  }
};

// MiniMax sparse attention.
struct MsaOp {
  bool context = true;
  std::uint64_t num_heads = 0;
  std::uint64_t num_kv_heads = 0;
  std::uint64_t hidden_size = 0;
  std::uint64_t head_dim = 0;
  std::string kv_cache_dtype;
  std::string fmha_quant_mode;
  std::string gemm_quant_mode;
  std::string_view Kind() const { return context ? "MsaContext" : "MsaGeneration"; }
  // Fixed sizes of the kernel.
  static constexpr std::uint64_t kValueDim = 128;
  static constexpr std::uint64_t kIndexHeads = 4;
  static constexpr std::uint64_t kIndexDim = 128;
  static constexpr std::uint64_t kTopK = 2048;
  static constexpr std::uint64_t kBlock = 128;
  template <class V>
  void Fields(V& v) const {
    v("num_heads", num_heads), v("num_kv_heads", num_kv_heads), v("hidden_size", hidden_size);
    v("head_dim", head_dim), v("v_head_dim", kValueDim), v("index_n_heads", kIndexHeads);
    v("index_head_dim", kIndexDim), v("index_topk", kTopK), v("block_size", kBlock);
    v("kv_cache_dtype", kv_cache_dtype), v("fmha_quant_mode", fmha_quant_mode);
    v("gemm_quant_mode", gemm_quant_mode), v("dsa_architecture", "GlmMoeDsaForCausalLM");
    v("dsa_scale_k", 1.0);
  }
};

// DeepSeek-V4 compressed attention: kind Csa (ratio 4, with an indexer) or Hca (ratio 128).
struct Dsv4Op {
  bool context = true;
  bool csa = true;
  std::uint64_t num_heads = 0;
  std::uint64_t native_heads = 0;
  std::uint64_t tp_size = 1;
  std::string kv_cache_dtype;
  std::string fmha_quant_mode;
  std::string gemm_quant_mode;
  std::string architecture;
  std::uint64_t window_size = 0;
  std::uint64_t hidden_size = 0;
  std::uint64_t q_lora_rank = 0;
  std::uint64_t o_lora_rank = 0;
  std::uint64_t head_dim = 0;
  std::uint64_t rope_head_dim = 0;
  std::uint64_t index_n_heads = 0;
  std::uint64_t index_head_dim = 0;
  std::uint64_t index_topk = 0;
  std::uint64_t o_groups = 1;
  std::string_view Kind() const { return context ? "Dsv4Context" : "Dsv4Generation"; }
  template <class V>
  void Fields(V& v) const {
    v("attn_kind", csa ? "Csa" : "Hca"), v("num_heads", num_heads), v("native_heads", native_heads);
    v("tp_size", tp_size), v("kv_cache_dtype", kv_cache_dtype);
    v("fmha_quant_mode", fmha_quant_mode), v("gemm_quant_mode", gemm_quant_mode);
    v("architecture", architecture), v("cp_size", 1), v("window_size", window_size);
    v("hidden_size", hidden_size), v("q_lora_rank", q_lora_rank), v("o_lora_rank", o_lora_rank);
    v("head_dim", head_dim), v("rope_head_dim", rope_head_dim), v("index_n_heads", index_n_heads);
    v("index_head_dim", index_head_dim), v("index_topk", index_topk), v("o_groups", o_groups);
  }
};

// Hyper-connections around a block of DeepSeek-V4.
struct MhcOp {
  static constexpr std::string_view kKind = "Mhc";
  std::string op;  // pre, post
  std::uint64_t hc_mult = 0;
  std::uint64_t hidden_size = 0;
  std::string architecture;
  std::uint64_t sinkhorn_iters = 0;
  template <class V>
  void Fields(V& v) const {
    v("op", op), v("hc_mult", hc_mult), v("hidden_size", hidden_size);
    v("architecture", architecture), v("sinkhorn_iters", sinkhorn_iters);
    v("quant_mode", "bfloat16"), v("seq_split", 1);
  }
};

// A part of a model whose kernels nobody has measured: its weights are known, its time is not.
struct UnmeasuredOp {
  static constexpr std::string_view kKind = "Unmeasured";
  double weight_bytes = 0.0;
  template <class V>
  void Fields(V& v) const {
    v("weight_bytes", weight_bytes);
  }
};

struct Operation;

// Two groups that run at the same time: the longer one counts.
struct OverlapOp {
  std::vector<Operation> group_a;
  std::vector<Operation> group_b;
};
// One measured module, or, where it has no data, the operations it consists of.
struct FallbackOp {
  std::vector<Operation> primary;  // exactly one
  std::vector<Operation> list;
};

struct Operation {
  std::string name;
  double scale_factor = 1.0;  // times it runs per pass, usually the number of layers
  std::variant<EmbeddingOp, ElementwiseOp, GemmOp, ContextAttentionOp, GenerationAttentionOp,
               AllReduceOp, P2POp, MoeOp, MoeDispatchOp, MlaModuleOp, ContextMlaOp, GenerationMlaOp,
               MlaBmmOp, LinearAttentionOp, Mamba2Op, DsaOp, MsaOp, Dsv4Op, MhcOp, UnmeasuredOp,
               OverlapOp, FallbackOp>
      kind;
};

// {"Kind": {"name": .., "scale_factor": .., fields}}
Json ToJson(const Operation& operation);
Json ToJson(const std::vector<Operation>& operations);
// The name of the kind: "Gemm".
std::string_view KindName(const Operation& operation);

}  // namespace dynosim::timing
