// SPDX-License-Identifier: Apache-2.0
#include "timing/op_level/kv_bytes.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/numeric.h"
#include "base/result.h"
#include "timing/op_level/dsv41_sizes.h"
#include "timing/op_level/graph.h"
#include "timing/op_level/layer_pattern.h"
#include "timing/op_level/model_spec.h"
#include "timing/op_level/modes.h"
#include "timing/op_level/operation.h"
#include "timing/op_level/pass_model.h"

namespace dynosim::timing {
namespace {

// Bytes of the keys and values of one token in `layers` layers.
double KeysAndValues(std::uint64_t heads, std::uint64_t dim, std::uint64_t layers, double element) {
  return ToDouble(heads * dim * layers) * 2.0 * element;
}

Result<KvBytes> Standard(const ModelSpec& m, std::uint64_t tp, double element) {
  if (m.kv_heads == 0) {
    return UsageError("", fmt::format("insufficient model metadata for {}; missing: "
                                      "kv_size_per_token_bytes (the configuration has no KV heads)",
                                      m.name));
  }
  const std::uint64_t heads = CeilDiv(m.kv_heads, tp);
  KvBytes out;
  if (m.gpt_oss()) {
    constexpr std::uint64_t kWindow = 128;
    const std::uint64_t local = m.layers / 2;
    out.Add({.bytes = KeysAndValues(heads, m.head_dim, local, element), .window = kWindow});
    out.Add({.bytes = KeysAndValues(heads, m.head_dim, m.layers - local, element)});
  } else {
    out.Add({.bytes = KeysAndValues(heads, m.head_dim, m.layers, element)});
  }
  return out;
}

Result<KvBytes> Latent(const ModelSpec& m, std::uint64_t layers, double element) {
  constexpr std::uint64_t kRank = 512, kRope = 64;
  const std::uint64_t width =
      m.WholeOr("kv_lora_rank", kRank) + m.WholeOr("qk_rope_head_dim", kRope);
  KvBytes out;
  out.Add({.bytes = ToDouble(layers * width) * element});
  return out;
}

// The latent in the KV type, the rotary part wide, and the indexer's keys with their scales.
Result<KvBytes> Indexed(const ModelSpec& m, double element) {
  DYNO_TRY(const std::uint64_t rank, m.Need("kv_lora_rank"));
  DYNO_TRY(const std::uint64_t rope, m.Need("qk_rope_head_dim"));
  DYNO_TRY(const std::uint64_t index, m.Need("index_head_dim"));
  const double token =
      ToDouble(rank) * element + ToDouble(rope * 2 + index + 4 * CeilDiv(index, 128));
  KvBytes out;
  out.Add({.bytes = ToDouble(m.layers) * token});
  return out;
}

Result<KvBytes> Windowed(const ModelSpec& m, std::uint64_t tp, double element) {
  DYNO_TRY(const LayerPattern pattern, FindLayerPattern(m));
  const std::uint64_t heads = CeilDiv(m.kv_heads, tp);
  KvBytes out;
  if (m.family == Family::kGemma4) {
    const Gemma4Heads g = FindGemma4Heads(m);
    out.Add({.bytes = KeysAndValues(heads, m.head_dim, pattern.sliding(), element),
             .window = pattern.window});
    out.Add({.bytes = KeysAndValues(CeilDiv(g.global_kv_heads, tp), g.global_head_dim,
                                    pattern.global(), element)});
  } else {
    out.Add({.bytes = KeysAndValues(heads, m.head_dim, pattern.sliding(), element),
             .window = pattern.window});
    out.Add({.bytes = KeysAndValues(heads, m.head_dim, pattern.global(), element)});
  }
  return out;
}

Result<KvBytes> Compressed(const ModelSpec& m, double element) {
  DYNO_TRY(const std::vector<std::uint64_t> ratios, FindCompressRatios(m));
  DYNO_TRY(const std::uint64_t window, m.Need("sliding_window"));
  DYNO_TRY(const std::uint64_t dim, m.Need("head_dim"));
  DYNO_TRY(const std::uint64_t index, m.Need("index_head_dim"));
  const double entry = ToDouble(dim) * element;
  KvBytes out;
  for (const std::uint64_t ratio : ratios) {
    constexpr std::uint64_t kNoWindow = 0;
    if (window > 0) {
      out.Add({.bytes = entry, .window = window});
    }
    if (ratio > 0) {
      const std::uint64_t streams = ratio == 4 ? 2 : 1;
      out.Add({.bytes = entry, .window = kNoWindow, .stride = ratio});
      out.AddFixed(ToDouble(2 * ratio * streams * dim * 4));
    }
    if (ratio == 4) {
      out.Add({.bytes = ToDouble(index) * 0.5, .window = kNoWindow, .stride = 4});
      out.AddFixed(ToDouble(std::uint64_t{2} * 4 * 2 * 4 * index));
    }
  }
  return out;
}

// Linear-attention layers hold a state of fixed size; only the others grow.
Result<KvBytes> Qwen35(const ModelSpec& m, std::uint64_t tp, double element) {
  DYNO_TRY(const GdnSizes z, FindGdnSizes(m));
  const std::uint64_t full = m.layers - z.layers;
  const double state_bytes = z.ssm_dtype == "float32" ? 4.0 : 2.0;
  KvBytes out;
  out.Add({.bytes = KeysAndValues(CeilDiv(m.kv_heads, tp), m.head_dim, full, element)});
  const std::uint64_t channels = (2 * z.k_heads * z.k_dim + z.v_heads * z.v_dim) / tp;
  out.AddFixed(ToDouble(z.layers) * (ToDouble(z.v_heads / tp * z.k_dim * z.v_dim) * state_bytes +
                                     ToDouble(channels * (z.conv > 0 ? z.conv - 1 : 0) * 2)));
  return out;
}

Result<KvBytes> KimiK3(const ModelSpec& m, std::uint64_t tp, double element) {
  DYNO_TRY(const KdaSizes z, FindKdaSizes(m));
  DYNO_TRY(KvBytes out, Latent(m, m.layers - z.layers, element));
  const std::uint64_t heads = std::max<std::uint64_t>(z.heads / tp, 1);
  constexpr std::uint64_t kSlots = 5;
  out.AddFixed(
      ToDouble(kSlots * z.layers) *
      ToDouble(heads * z.dim * z.dim * 4 + (z.conv > 0 ? z.conv - 1 : 0) * 3 * heads * z.dim * 2));
  return out;
}

}  // namespace

double KvBytes::OfSequence(std::uint64_t tokens) const {
  double bytes = fixed_;
  for (const Layers& layers : layers_) {
    const std::uint64_t counted = layers.window > 0 ? std::min(tokens, layers.window) : tokens;
    bytes += ToDouble(counted / layers.stride) * layers.bytes;
  }
  return bytes;
}

std::uint64_t KvBytes::TokensWithin(double budget) const {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
  std::uint64_t low = 0;  // fits, or is the answer for "nothing fits"
  std::uint64_t high = kMost;
  while (low + 1 < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    (OfSequence(middle) <= budget ? low : high) = middle;
  }
  return low;
}

std::uint64_t KvBytes::TokensBesideWindows(double budget, std::uint64_t sequences) const {
  double aside = fixed_;
  double token = 0.0;
  for (const Layers& layers : layers_) {
    if (layers.window > 0) {
      aside += ToDouble(layers.window / layers.stride) * layers.bytes;
    } else {
      token += layers.bytes / ToDouble(layers.stride);
    }
  }
  const double left = budget - ToDouble(sequences) * aside;
  return left > 0.0 && token > 0.0 ? SaturatingCast<std::uint64_t>(left / token) : 0;
}

Result<KvBytes> FindKvBytes(const PassModel& model) {
  const ModelSpec& m = model.model();
  const std::uint64_t tp = model.deployment().tp;
  const double element = BytesOf(model.modes().kv);
  if (m.Is({Family::kDeepSeek, Family::kKimiK25})) {
    return Latent(m, m.layers, element);
  }
  if (m.Is({Family::kDeepSeekV32})) {
    return Indexed(m, element);
  }
  if (m.Is({Family::kDeepSeekV4})) {
    return Compressed(m, element);
  }
  if (m.Is({Family::kDeepSeekV41})) {
    DYNO_TRY(const Dsv41Sizes sizes, FindDsv41Sizes(m));
    return Dsv41KvBytes(m, sizes, model.database().backend() == "sglang");
  }
  if (m.Is({Family::kGemma4, Family::kStep3p7, Family::kMuseGlimmer})) {
    return Windowed(m, tp, element);
  }
  if (m.Is({Family::kQwen35})) {
    return Qwen35(m, tp, element);
  }
  return m.Is({Family::kKimiK3}) ? KimiK3(m, tp, element) : Standard(m, tp, element);
}

}  // namespace dynosim::timing
