// SPDX-License-Identifier: Apache-2.0
#include "timing/op_level/memory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/numeric.h"
#include "base/result.h"
#include "perfdb/system_spec.h"
#include "timing/op_level/dsv41_sizes.h"
#include "timing/op_level/graph.h"
#include "timing/op_level/kv_bytes.h"
#include "timing/op_level/model_spec.h"
#include "timing/op_level/modes.h"
#include "timing/op_level/operation.h"
#include "timing/op_level/pass_model.h"
#include "timing/op_level/weights.h"

namespace dynosim::timing {
namespace {

constexpr double kMebibyte = 1048576.0;

// Index of a tensor width in tables for 1, 2, 4, 8 ranks.
Result<std::size_t> WidthIndex(std::uint64_t tp) {
  constexpr std::array<std::uint64_t, 4> kWidths = {1, 2, 4, 8};
  for (std::size_t i = 0; i < kWidths.size(); ++i) {
    if (kWidths[i] == std::min<std::uint64_t>(tp, 8)) {
      return i;
    }
  }
  return UsageError("tp", fmt::format("no memory model for {} ranks; 1, 2, 4, 8 or more", tp));
}

// Bytes of activations per token and element of the hidden state, by tensor width.
using Coefficients = std::array<double, 4>;

Coefficients ActivationFactors(const ModelSpec& model, bool sglang) {
  if (model.Is({Family::kLlama, Family::kMuseGlimmer})) {
    return sglang ? Coefficients{14, 8.5, 6.5, 6.5} : Coefficients{11, 6.5, 5, 5};
  }
  if (model.Is({Family::kMoe, Family::kDeepSeek, Family::kKimiK25, Family::kDeepSeekV32,
                Family::kDeepSeekV4, Family::kDeepSeekV41, Family::kGemma4, Family::kStep3p7})) {
    return sglang ? Coefficients{28, 17, 13, 13} : Coefficients{22, 13, 10, 10};
  }
  if (model.Is({Family::kKimiK3})) {
    return sglang ? Coefficients{28, 17, 13, 13} : Coefficients{10, 6, 5, 5};
  }
  return sglang ? Coefficients{13, 8, 6.5, 6.5} : Coefficients{10, 6, 5, 5};
}

// Width of the buffers that tokens pass through on their way to the experts; 0: none are charged.
std::uint64_t ExpertBufferWidth(const ModelSpec& model, bool sglang) {
  if (model.Is({Family::kDeepSeek, Family::kKimiK25, Family::kDeepSeekV32})) {
    return sglang ? model.hidden : model.heads * model.head_dim;
  }
  const bool charged =
      model.Is({Family::kGemma4, Family::kStep3p7, Family::kDeepSeekV4, Family::kDeepSeekV41}) &&
      model.experts > 0;
  return charged ? model.hidden : 0;
}

Result<double> Activations(const PassModel& model, const CapacityQuestion& question,
                           std::size_t width) {
  const ModelSpec& spec = model.model();
  const Deployment& d = model.deployment();
  const bool sglang = model.database().backend() == "sglang";
  const double tokens = ToDouble(question.max_batched_tokens);
  double bytes =
      2.0 * tokens * ToDouble(spec.heads * spec.head_dim) * ActivationFactors(spec, sglang)[width];
  if (const std::uint64_t buffer = ExpertBufferWidth(spec, sglang); buffer > 0) {
    bytes += tokens * ToDouble(buffer) * ToDouble(d.attention_dp) * ToDouble(spec.experts) *
             ToDouble(spec.topk) / ToDouble(d.moe_ep) / 128.0 * 4.0;
  }
  if (spec.Is({Family::kDeepSeekV41})) {
    DYNO_TRY(const Dsv41Sizes sizes, FindDsv41Sizes(spec));
    bytes += tokens * Dsv41ActivationBytes(spec, sizes);
  }
  bytes = std::max(bytes, (sglang ? 90.0 : 70.0) * kMebibyte);
  return sglang ? bytes * 1.15 : bytes;
}

}  // namespace

double DefaultMemoryFraction(std::string_view backend) { return backend == "sglang" ? 0.88 : 0.9; }

Result<Capacity> FindCapacity(const PassModel& model, const CapacityQuestion& question) {
  const std::string& backend = model.database().backend();
  const perfdb::SystemSpec& system = model.database().system();
  const double fraction = question.memory_fraction.value_or(DefaultMemoryFraction(backend));
  if (!(fraction >= 0.0) || fraction > 1.0) {
    return UsageError("memory_fraction", fmt::format("must be from 0 to 1, got {}", fraction));
  }
  if (question.block_size == 0) {
    return UsageError("block_size", "must be > 0");
  }
  DYNO_TRY(const std::size_t width, WidthIndex(model.deployment().tp));
  DYNO_TRY(const double weights, WeightBytes(model));
  DYNO_TRY(const double activations, Activations(model, question, width));
  Capacity out;
  out.use = {.weights = weights,
             .activations = activations,
             .communication = ToDouble(system.nccl_mem[width]),
             .runtime = ToDouble(system.other_mem) * (backend == "sglang" ? 1.2 : 1.0),
             .cuda_graphs = ToDouble(question.cuda_graph_bytes)};
  const MemoryUse& use = out.use;
  const double all = ToDouble(system.mem_capacity);
  double charged =
      use.weights + use.activations + use.communication + use.runtime + use.cuda_graphs;
  if (backend == "vllm") {
    out.budget_bytes = all * fraction - charged;
  } else if (backend == "trtllm") {
    out.budget_bytes = (all - charged) * fraction;
  } else {
    charged = use.weights + use.cuda_graphs;
    out.budget_bytes = (all - (use.communication + use.runtime)) * fraction - charged;
  }
  if (!(out.budget_bytes > 0.0)) {
    return UsageError(
        "",
        fmt::format("no KV budget: non-KV memory ({} bytes) meets or exceeds the KV cache limit "
                    "(capacity={} bytes)",
                    SaturatingCast<std::uint64_t>(charged), system.mem_capacity));
  }
  DYNO_TRY(const KvBytes kv, FindKvBytes(model));
  out.bytes_of_one_token = SaturatingCast<std::uint64_t>(kv.OfSequence(1));
  // DeepSeek-V4.1 sets the windows and states of all requests aside.
  out.tokens = model.model().Is({Family::kDeepSeekV41})
                   ? kv.TokensBesideWindows(out.budget_bytes, question.max_requests)
                   : kv.TokensWithin(out.budget_bytes);
  out.blocks = out.tokens / question.block_size;
  if (out.blocks == 0) {
    return UsageError("", fmt::format("no KV budget: {} bytes hold {} tokens, less than a block of "
                                      "{}",
                                      SaturatingCast<std::uint64_t>(out.budget_bytes), out.tokens,
                                      question.block_size));
  }
  return out;
}

Result<std::uint64_t> TransferBytesPerToken(const ModelSpec& model, std::uint64_t tp,
                                            const std::optional<std::string>& kv_mode) {
  const std::uint64_t element = kv_mode == "fp8" || kv_mode == "int8" ? 1 : 2;
  if (const auto rank = model.Whole({"kv_lora_rank"})) {
    DYNO_TRY(const std::uint64_t rope, model.Need("qk_rope_head_dim"));
    return model.layers * (*rank + rope) * element;
  }
  if (model.kv_heads == 0) {
    return UsageError(
        "", fmt::format("the configuration of {} does not give its KV heads", model.name));
  }
  return 2 * CeilDiv(model.kv_heads, tp) * model.head_dim * model.layers * element;
}

}  // namespace dynosim::timing
