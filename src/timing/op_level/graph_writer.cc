// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "timing/op_level/graph.h"
#include "timing/op_level/model_spec.h"
#include "timing/op_level/operation.h"

namespace dynosim::timing {

std::uint64_t CeilDiv(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

GraphWriter::GraphWriter(const GraphInput& input, bool context)
    : in_(input), context_(context), prefix_(context ? "context_" : "generation_") {
  if (!context && input.nextn > 0) {
    factor_ = static_cast<double>(input.nextn + input.model.layers) /
              static_cast<double>(input.model.layers);
  }
}

std::uint64_t GraphWriter::kv_heads_per_gpu() const { return CeilDiv(model().kv_heads, tp()); }

void GraphWriter::Add(std::string_view name, double scale, Kind kind) {
  operations_.push_back({.name = prefix_ + std::string(name),
                         .scale_factor = scale * factor_,
                         .kind = std::move(kind)});
}

void GraphWriter::Embedding(std::uint64_t vocab) {
  Add("embedding", 1.0, EmbeddingOp{.vocab_size = vocab, .hidden_size = model().hidden});
}

void GraphWriter::Elementwise(std::string_view name, double scale, std::uint64_t in,
                              std::uint64_t out) {
  Add(name, scale, ElementwiseOp{.bytes_per_token = static_cast<double>(2 * (in + out))});
}

void GraphWriter::Gemm(std::string_view name, double scale, std::uint64_t n, std::uint64_t k,
                       std::string_view mode, GemmOptions options) {
  Add(name, scale,
      GemmOp{.n = n,
             .k = k,
             .quant_mode = std::string(mode),
             .low_precision_input = options.low_precision_input,
             .below_grid_sol = options.below_grid_sol});
}

void GraphWriter::Attention(std::string_view name, double scale, const AttentionShape& shape) {
  const std::vector<std::string> only_default = {"default"};
  if (context_) {
    Add(name, scale,
        ContextAttentionOp{.n = shape.heads,
                           .n_kv = shape.kv_heads,
                           .head_size = shape.head_dim,
                           .window_size = shape.window,
                           .kv_cache_dtype = in_.modes.kv,
                           .fmha_quant_mode = in_.modes.fmha,
                           .use_qk_norm = shape.qk_norm,
                           .lane_order = shape.default_lane ? only_default : in_.context_lanes,
                           .apply_rope = shape.rope});
    return;
  }
  Add(name, scale,
      GenerationAttentionOp{.n = shape.heads,
                            .n_kv = shape.kv_heads,
                            .head_size = shape.head_dim,
                            .window_size = shape.window,
                            .kv_cache_dtype = in_.modes.kv,
                            .lane_order = shape.default_lane ? only_default : in_.generation_lanes,
                            .use_qk_norm = shape.qk_norm});
}

void GraphWriter::AllReduce(std::string_view name, double scale) {
  Add(name, scale, AllReduceOp{.hidden_size = model().hidden, .tp_size = tp()});
}

void GraphWriter::P2P() {
  Add("p2p", static_cast<double>(in_.layout.pp - 1),
      P2POp{.pp_size = in_.layout.pp, .hidden_size = model().hidden});
}

void GraphWriter::Logits() {
  Gemm("logits_gemm", 1.0, model().vocab / tp(), model().hidden, "bfloat16");
}

void GraphWriter::Experts(std::string_view name, double scale, const MoeOp& shape) {
  Add(name, scale, shape);
}

MoeOp GraphWriter::ExpertsOfModel(std::string_view distribution) const {
  return {.hidden_size = model().hidden,
          .inter_size = model().moe_inter,
          .topk = model().topk,
          .num_experts = model().experts,
          .layout = in_.layout.moe,
          .quant_mode = in_.modes.moe,
          .workload_distribution = std::string(distribution),
          .is_gated = true,
          .is_context = true};
}

MoeDispatchOp GraphWriter::Dispatch(const DispatchShape& shape, bool pre) const {
  return {.hidden_size = shape.hidden,
          .topk = model().topk,
          .num_experts = model().experts,
          .layout = in_.layout.moe,
          .pre_dispatch = pre,
          .attn_ar_modeled = shape.attn_ar_modeled,
          .backend = in_.platform.backend,
          .moe_quant = shape.quant,
          .is_context = shape.is_context,
          .sms = shape.sms,
          .scale_num_tokens = pre && context_ ? shape.context_scale : 1};
}

void GraphWriter::PreDispatch(std::string_view name, double scale, const DispatchShape& shape) {
  Add(name, scale, Dispatch(shape, true));
}

void GraphWriter::PostDispatch(std::string_view name, double scale, const DispatchShape& shape) {
  Add(name, scale, Dispatch(shape, false));
}

}  // namespace dynosim::timing
