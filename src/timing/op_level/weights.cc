// SPDX-License-Identifier: Apache-2.0
#include "timing/op_level/weights.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <variant>
#include <vector>

#include "base/result.h"
#include "timing/op_level/dsa_sizes.h"
#include "timing/op_level/graph.h"
#include "timing/op_level/model_spec.h"
#include "timing/op_level/modes.h"
#include "timing/op_level/operation.h"
#include "timing/op_level/pass_model.h"

namespace dynosim::timing {
namespace {

double SumOfWeights(const std::vector<Operation>& operations);

double Weights(const EmbeddingOp& op) {
  return ToDouble(op.vocab_size) * ToDouble(op.hidden_size) * 2.0;
}
double Weights(const GemmOp& op) {
  return ToDouble(op.n) * ToDouble(op.k) * BytesOf(op.quant_mode);
}
double Weights(const DsaOp& op) {
  const DsaSizes z = DsaSizesOf(op.architecture);
  const std::uint64_t heads = op.num_heads;
  const ProjectionModes& modes = op.projections;
  return ToDouble(z.hidden * z.q_lora + z.q_lora * heads * (z.nope + z.rope)) * BytesOf(modes.q) +
         ToDouble(z.hidden * (z.kv_lora + z.rope) + z.kv_lora * heads * (z.nope + z.value)) *
             BytesOf(modes.kv) +
         ToDouble(heads * z.value * z.hidden) * BytesOf(modes.o) +
         ToDouble(z.q_lora * z.index_dim * z.index_heads + z.hidden * z.index_heads) *
             BytesOf(modes.indexer);
}
double Weights(const Dsv4Op& op) {
  const std::uint64_t h = op.hidden_size;
  const std::uint64_t ratio = op.csa ? 4 : 128;
  const std::uint64_t streams = op.csa ? 2 : 1;
  std::uint64_t quantized = h * op.q_lora_rank + op.q_lora_rank * op.num_heads * op.head_dim +
                            h * op.head_dim + op.o_groups * op.o_lora_rank * h +
                            2 * h * streams * op.head_dim;
  std::uint64_t wide = op.num_heads * op.head_dim * op.o_lora_rank;
  std::uint64_t widest = op.num_heads + ratio * streams * op.head_dim;
  if (op.csa) {
    quantized += op.q_lora_rank * op.index_n_heads * op.index_head_dim + 4 * h * op.index_head_dim;
    wide += h * op.index_n_heads;
    widest += 2 * ratio * op.index_head_dim;
  }
  return ToDouble(quantized) * BytesOf(op.gemm_quant_mode) + ToDouble(2 * wide) +
         ToDouble(4 * widest);
}
double Weights(const MhcOp& op) {
  const double inner = ToDouble(op.hc_mult * op.hidden_size);
  const double mix = ToDouble((2 + op.hc_mult) * op.hc_mult);
  return 2.0 * (mix * inner + mix + 3.0) * 2.0;
}
double Weights(const UnmeasuredOp& op) { return op.weight_bytes; }
template <class Other>
double Weights(const Other&) {
  return 0.0;
}

// Whole bytes per GPU, times the number of layers.
double ExpertWeights(const MoeOp& op, double scale) {
  const double all = std::floor(ToDouble(op.hidden_size) * ToDouble(op.inter_size) *
                                ToDouble(op.num_experts) * BytesOf(op.quant_mode) *
                                (op.is_gated ? 3.0 : 2.0) / ToDouble(op.layout.moe_ep_size));
  return std::floor(all / ToDouble(op.layout.moe_tp_size)) * scale;
}

double WeightsOf(const Operation& operation) {
  return std::visit(
      [&operation](const auto& kind) {
        using Kind = std::remove_cvref_t<decltype(kind)>;
        if constexpr (std::same_as<Kind, OverlapOp>) {
          return SumOfWeights(kind.group_a) + SumOfWeights(kind.group_b);
        } else if constexpr (std::same_as<Kind, FallbackOp>) {
          const double primary = SumOfWeights(kind.primary);
          return primary > 0.0 ? primary : SumOfWeights(kind.list);
        } else if constexpr (std::same_as<Kind, MoeOp>) {
          return ExpertWeights(kind, operation.scale_factor);
        } else {
          return Weights(kind) * operation.scale_factor;
        }
      },
      operation.kind);
}

double SumOfWeights(const std::vector<Operation>& operations) {
  double sum = 0.0;
  for (const Operation& operation : operations) {
    sum += WeightsOf(operation);
  }
  return sum;
}

// SGLang keeps the vocabulary undivided, and the first layers of the model are dense.
double SglangDeepSeekWeights(const PassModel& model, double sum) {
  const ModelSpec& m = model.model();
  const Deployment& d = model.deployment();
  const double tp = ToDouble(d.tp);
  const double h = ToDouble(m.hidden);
  const double inner = ToDouble(m.moe_inter);
  const double layers = ToDouble(m.layers);
  const double dense_layers = ToDouble(std::min(m.WholeOr("first_k_dense_replace", 0), m.layers));
  const double shared_experts = ToDouble(m.WholeOr("n_shared_experts", 0));
  const double routed = 3.0 * h * inner * ToDouble(m.experts) * BytesOf(model.modes().moe) /
                        (ToDouble(d.moe_tp) * ToDouble(d.moe_ep));
  const double shared = 3.0 * h * inner * BytesOf(model.shared_expert_mode()) / tp;
  const double router = 2.0 * h * ToDouble(m.experts);
  const double dense = 3.0 * h * ToDouble(m.inter) * BytesOf(model.modes().gemm) / tp;
  const double moe_layers = layers - dense_layers;
  sum -= 2.0 * ToDouble(m.vocab) * h * (1.0 - 1.0 / tp);
  sum -= layers * (routed + shared + router);
  sum += moe_layers * (routed + shared_experts * shared + router);
  sum += dense_layers * dense;
  return sum;
}

}  // namespace

Result<double> WeightBytes(const PassModel& model) {
  const double sum = SumOfWeights(model.weight_operations());
  const bool corrected = model.database().backend() == "sglang" && model.deployment().pp == 1 &&
                         model.model().architecture == "DeepseekV3ForCausalLM";
  return corrected ? SglangDeepSeekWeights(model, sum) : sum / ToDouble(model.deployment().pp);
}

}  // namespace dynosim::timing
