// SPDX-License-Identifier: Apache-2.0
// Graphs: from a model and its parallel layout to the operation lists of its two phases. One
// builder per family; families.cc holds the table of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "timing/op_level/model_spec.h"
#include "timing/op_level/operation.h"
#include "timing/op_level/quantization.h"

namespace dynosim::timing {

struct ParallelLayout {
  std::uint64_t tp = 1;  // tensor
  std::uint64_t pp = 1;  // pipeline
  MoeLayout moe;         // experts; its attention_dp is the number of attention replicas
};

// Everything a builder may depend on.
struct GraphInput {
  const ModelSpec& model;
  ParallelLayout layout;
  std::uint64_t nextn = 0;  // speculative tokens of the model's own draft layers
  QuantModes modes;
  Platform platform;
  std::vector<std::string> context_lanes, generation_lanes;
};

struct ModelGraph {
  std::vector<Operation> context;
  std::vector<Operation> generation;
};

// Refuses layouts that the model cannot have. Errors are one line.
Result<ModelGraph> BuildGraph(const GraphInput& input);

// Settings of an attention operation beyond those of the model.
struct AttentionShape {
  std::uint64_t heads = 0;     // per GPU
  std::uint64_t kv_heads = 0;  // per GPU
  std::uint64_t head_dim = 0;
  std::uint64_t window = 0;
  bool qk_norm = false;
  bool rope = true;
  bool default_lane = false;  // inside of a substitute list
};

struct DispatchShape {
  std::uint64_t hidden = 0;
  std::string quant;  // of the experts
  bool attn_ar_modeled = false;
  bool is_context = true;
  std::uint64_t sms = 12;
  std::uint64_t context_scale = 1;  // scale_num_tokens of the first dispatch in the context phase
};

// Writes the list of one phase. Names get the phase as prefix, and in the generation phase every
// factor is multiplied by (nextn + layers) / layers.
class GraphWriter {
 public:
  GraphWriter(const GraphInput& input, bool context);

  const GraphInput& in() const { return in_; }
  const ModelSpec& model() const { return in_.model; }
  bool context() const { return context_; }
  std::uint64_t tp() const { return in_.layout.tp; }
  std::uint64_t kv_heads_per_gpu() const;
  // Factors stay as they are (models that count draft layers by themselves).
  void DoNotScaleGeneration() { factor_ = 1.0; }

  using Kind = decltype(Operation::kind);
  void Add(std::string_view name, double scale, Kind kind);
  // From here on names have no prefix (operations of a draft model).
  void DropPrefix() { prefix_.clear(); }
  // The operations that `write` adds, as a group of their own.
  template <class Write>
  std::vector<Operation> Group(const Write& write) {
    std::vector<Operation> outer = std::exchange(operations_, {});
    write();
    return std::exchange(operations_, std::move(outer));
  }
  std::vector<Operation> Take() { return std::move(operations_); }

  void Embedding(std::uint64_t vocab);
  void Elementwise(std::string_view name, double scale, std::uint64_t in, std::uint64_t out);
  // Read and write of the residual stream and one branch.
  void Norm(std::string_view name, double scale) {
    Elementwise(name, scale, 2 * model().hidden, 2 * model().hidden);
  }
  struct GemmOptions {
    bool low_precision_input = false;
    bool below_grid_sol = false;
  };
  void Gemm(std::string_view name, double scale, std::uint64_t n, std::uint64_t k,
            std::string_view mode, GemmOptions options);
  void Gemm(std::string_view name, double scale, std::uint64_t n, std::uint64_t k,
            std::string_view mode) {
    Gemm(name, scale, n, k, mode, {});
  }
  void Attention(std::string_view name, double scale, const AttentionShape& shape);
  void AllReduce(std::string_view name, double scale);
  void P2P();
  void Logits();
  void Experts(std::string_view name, double scale, const MoeOp& shape);
  // What the model's configuration says about its experts.
  MoeOp ExpertsOfModel(std::string_view distribution) const;
  void PreDispatch(std::string_view name, double scale, const DispatchShape& shape);
  void PostDispatch(std::string_view name, double scale, const DispatchShape& shape);

 private:
  MoeDispatchOp Dispatch(const DispatchShape& shape, bool pre) const;

  const GraphInput& in_;
  bool context_;
  double factor_ = 1.0;
  std::string prefix_;
  std::vector<Operation> operations_;
};

// Runs a writer for both phases.
template <class Write>
ModelGraph WriteBoth(const GraphInput& input, const Write& write) {
  ModelGraph graph;
  for (const bool context : {true, false}) {
    GraphWriter writer(input, context);
    write(writer);
    (context ? graph.context : graph.generation) = writer.Take();
  }
  return graph;
}

// The builders.
Result<ModelGraph> BuildLlama(const GraphInput& input);
Result<ModelGraph> BuildMoe(const GraphInput& input);
Result<ModelGraph> BuildDeepSeek(const GraphInput& input);
Result<ModelGraph> BuildNemotronNas(const GraphInput& input);
Result<ModelGraph> BuildNemotronH(const GraphInput& input);
Result<ModelGraph> BuildQwen35(const GraphInput& input);
Result<ModelGraph> BuildKimiK3(const GraphInput& input);
Result<ModelGraph> BuildDeepSeekV32(const GraphInput& input);
Result<ModelGraph> BuildDeepSeekV4(const GraphInput& input);
Result<ModelGraph> BuildDeepSeekV41(const GraphInput& input);
Result<ModelGraph> BuildHybridMoe(const GraphInput& input);
Result<ModelGraph> BuildGemma4(const GraphInput& input);
Result<ModelGraph> BuildMiniMaxM3(const GraphInput& input);
Result<ModelGraph> BuildMuseGlimmer(const GraphInput& input);

// Refuses block-quantized experts whose width does not divide into whole blocks.
Result<void> CheckExpertBlocks(const GraphInput& input);
std::uint64_t CeilDiv(std::uint64_t a, std::uint64_t b);
// The one mode of a shared expert: bfloat16 when the checkpoint leaves it unquantized.
std::string SharedExpertMode(const GraphInput& input);

}  // namespace dynosim::timing
