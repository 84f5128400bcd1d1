// SPDX-License-Identifier: Apache-2.0
// DeepSeek-V4.1: sizes, weights and KV cache by its configuration. Its kernels are in no
// performance data, so capacities are all that can be known. The formulas are fitted to capacities
// of changed configurations and hold for them byte for byte; types other than those of the
// published checkpoint are unknown.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "timing/op_level/graph.h"
#include "timing/op_level/kv_bytes.h"
#include "timing/op_level/model_spec.h"

namespace dynosim::timing {

struct Dsv41Sizes {
  std::uint64_t q_rank = 0, o_rank = 0, o_groups = 0, rope = 0, window = 0;
  std::uint64_t index_heads = 0, index_dim = 0, shared_experts = 0, hc_mult = 0;
  // Layers that make a compressed cache of their own, by their ratio; the others read one of these.
  std::vector<std::uint64_t> source_ratios;
  std::uint64_t index_layers = 0;          // layers with an index of their own
  std::vector<std::uint64_t> engram_rows;  // rows of each table of n-gram embeddings
  std::uint64_t engram_columns = 0;        // rows that one token reads of a table
  std::uint64_t engram_dim = 0;            // width of a row

  std::uint64_t engram_width() const { return engram_columns * engram_dim; }
  // Coefficients that mix the streams of a block.
  std::uint64_t mixers() const { return (2 + hc_mult) * hc_mult; }
};
Result<Dsv41Sizes> FindDsv41Sizes(const ModelSpec& model);

// Bytes of a token's activations besides those of every model with experts.
double Dsv41ActivationBytes(const ModelSpec& model, const Dsv41Sizes& sizes);
// `sglang`: the cache holds FP8 values with scales, else FP4 ones behind an FP8 window.
KvBytes Dsv41KvBytes(const ModelSpec& model, const Dsv41Sizes& sizes, bool sglang);

}  // namespace dynosim::timing
