// SPDX-License-Identifier: Apache-2.0
// Sparse attention modules: DeepSeek's, with an indexer that picks tokens, and MiniMax's, which
// picks blocks. Each is measured as a whole over (heads, prefix, new tokens, batch), and in the
// generation phase over (heads, batch, length).
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "perfdb/grid.h"
#include "perfdb/table.h"
#include "timing/op_level/database.h"
#include "timing/op_level/dsa_sizes.h"
#include "timing/op_level/modes.h"
#include "timing/op_level/op_timer.h"
#include "timing/op_level/operation.h"
#include "timing/op_level/token_pairs.h"

namespace dynosim::timing {
namespace {

using perfdb::Coordinates;
using perfdb::Grid;
using perfdb::GridSol;
using perfdb::Rows;
using perfdb::Table;

constexpr std::array<std::size_t, 4> kContextAxes = {6, 7, 8, 9};
constexpr std::array<std::size_t, 3> kGenerationAxes = {6, 7, 8};
constexpr std::array<std::size_t, 3> kMsaGenerationAxes = {5, 6, 7};
// The kind of kernel that is looked up first.
constexpr std::array<std::string_view, 2> kBuckets = {"trtllm", "flashmla_kv"};

// Rates and element sizes that least times are made of.
struct Rates {
  double gemm_flops = 0.0;
  double index_flops = 0.0;
  double attention_flops = 0.0;
  double mem_bw = 0.0;
  double gemm_bytes = 0.0;
  double kv_bytes = 0.0;
  double attention_bytes = 0.0;
};

struct RateModes {
  std::string gemm, kv, attention;
};

std::expected<Rates, Failure> FindRates(const PerfDatabase& db, const RateModes& modes) {
  const auto gemm = db.Flops(modes.gemm);
  const auto index = db.Flops("fp8");
  const auto attention = db.Flops(modes.attention);
  if (!gemm || !index || !attention) {
    return MissingFlops(db, !gemm ? modes.gemm : !index ? "fp8" : modes.attention);
  }
  return Rates{.gemm_flops = *gemm,
               .index_flops = *index,
               .attention_flops = *attention,
               .mem_bw = db.system().mem_bw,
               .gemm_bytes = BytesOf(modes.gemm),
               .kv_bytes = BytesOf(modes.kv),
               .attention_bytes = BytesOf(modes.attention)};
}

// Least time of one module. `skip`: the layer reuses the choice of an earlier indexer.
class DsaSol {
 public:
  DsaSol(const DsaOp& op, const PerfDatabase& db, const Rates& rates, bool skip)
      : z_(DsaSizesOf(op.architecture)),
        rates_(rates),
        skip_(skip),
        no_projection_(skip && db.backend() == "vllm") {}

  double Context(std::uint64_t heads, std::uint64_t prefix, std::uint64_t added,
                 std::uint64_t batch) const {
    const std::uint64_t tokens = batch * added;
    const std::uint64_t full = prefix + added;
    const bool no_index = skip_ || full <= z_.top_k;
    const std::uint64_t index_ops =
        no_index ? 0 : 2 * tokens * z_.index_heads * z_.index_dim * full;
    const std::uint64_t attention_ops =
        2 * heads * (AttentionDim() + z_.kv_lora) * LimitedPairs(batch, added, prefix, z_.top_k);
    const double bytes =
        Weights(heads) +
        ToDouble(batch * heads * std::min(full, z_.top_k) * AttentionDim()) * rates_.kv_bytes +
        ToDouble(no_index ? 0 : batch * full * IndexEntry()) +
        ToDouble(tokens * heads * QueryDim()) * rates_.attention_bytes * 2.0;
    return Time(GemmOps(heads, tokens), index_ops, attention_ops, bytes);
  }

  double Generation(std::uint64_t heads, std::uint64_t batch, std::uint64_t length) const {
    const std::uint64_t attended = std::min(length, z_.top_k);
    const std::uint64_t index_ops = 2 * batch * IndexHeads() * z_.index_dim * length;
    const std::uint64_t attention_ops =
        2 * batch * heads * (AttentionDim() + z_.kv_lora) * attended;
    const double bytes = Weights(heads) +
                         ToDouble(no_projection_ ? 0 : batch * length * IndexEntry()) +
                         ToDouble(batch * attended * AttentionDim()) * rates_.kv_bytes;
    return Time(GemmOps(heads, batch), index_ops, attention_ops, bytes);
  }

 private:
  std::uint64_t QueryDim() const { return z_.nope + z_.rope; }
  std::uint64_t AttentionDim() const { return z_.kv_lora + z_.rope; }
  std::uint64_t IndexEntry() const { return z_.index_dim + 4 * ((z_.index_dim + 127) / 128); }
  std::uint64_t IndexHeads() const { return no_projection_ ? 0 : z_.index_heads; }
  std::uint64_t ProjectionOut() const {
    return z_.q_lora + z_.kv_lora + z_.rope + (no_projection_ ? 0 : z_.index_dim);
  }
  std::uint64_t GemmOps(std::uint64_t heads, std::uint64_t tokens) const {
    const std::uint64_t t = 2 * tokens;
    return t * z_.hidden * ProjectionOut() + t * z_.q_lora * heads * QueryDim() +
           t * z_.q_lora * IndexHeads() * z_.index_dim + t * z_.hidden * IndexHeads() +
           t * heads * z_.value * z_.hidden + t * heads * z_.nope * z_.kv_lora +
           t * heads * z_.kv_lora * z_.value;
  }
  double Weights(std::uint64_t heads) const {
    return ToDouble(z_.hidden * ProjectionOut() + z_.q_lora * heads * QueryDim() +
                    z_.q_lora * IndexHeads() * z_.index_dim + z_.hidden * IndexHeads() +
                    heads * z_.value * z_.hidden) *
           rates_.gemm_bytes;
  }
  double Time(std::uint64_t gemm, std::uint64_t index, std::uint64_t attention,
              double bytes) const {
    return std::max((ToDouble(gemm) / rates_.gemm_flops + ToDouble(index) / rates_.index_flops +
                     ToDouble(attention) / rates_.attention_flops) *
                        1000.0,
                    bytes / rates_.mem_bw * 1000.0);
  }

  DsaSizes z_;
  Rates rates_;
  bool skip_, no_projection_;
};

// One module's measurements, of layers with or without the indexer.
struct Module {
  Grid grid;
  std::string_view bucket;
};

template <class... Key>
Module FindModule(const Table* table, std::span<const std::size_t> axes, bool skip,
                  const Key&... key) {
  for (const std::string_view bucket : kBuckets) {
    const Rows rows =
        table == nullptr ? Rows{} : Select(*table, bucket, std::uint64_t{skip ? 1U : 0U}, key...);
    if (!rows.empty()) {
      return {.grid = Grid::FromRows(*table, rows, axes), .bucket = bucket};
    }
  }
  return {};
}

bool HasSkipRows(const Table& table) {
  for (const std::string_view bucket : kBuckets) {
    if (!Select(table, bucket, std::uint64_t{1}).empty()) {
      return true;
    }
  }
  return false;
}

GridSol DsaGridSol(const DsaOp& op, const PerfDatabase& db, const Rates& rates, bool skip) {
  const DsaSol sol(op, db, rates, skip);
  if (op.context) {
    return [sol](const Coordinates& at) { return sol.Context(at[0], at[1], at[2], at[3]); };
  }
  return [sol](const Coordinates& at) { return sol.Generation(at[0], at[1], at[2]); };
}

}  // namespace

OpTimer Compile(const DsaOp& op, PerfDatabase& db) {
  const std::string mla = op.context ? op.fmha_quant_mode : "bfloat16";
  const auto rates =
      FindRates(db, {.gemm = op.gemm_quant_mode, .kv = op.kv_cache_dtype, .attention = mla});
  if (!rates) {
    return Always(std::unexpected(rates.error()));
  }
  const Table* const table = db.Find(op.context ? "dsa_context" : "dsa_generation");
  const std::span<const std::size_t> axes =
      op.context ? std::span<const std::size_t>(kContextAxes) : kGenerationAxes;
  const auto find = [&](bool skip) {
    return FindModule(table, axes, skip, op.architecture, mla, op.kv_cache_dtype,
                      op.gemm_quant_mode);
  };
  const std::string missing =
      fmt::format("sparse attention data missing for {}, attention {}, KV cache {}, GEMM {}",
                  op.architecture, mla, op.kv_cache_dtype, op.gemm_quant_mode);
  Module full = find(false);
  if (full.grid.empty()) {
    return Always(MissingData(missing));
  }
  Module skipping;
  double share = op.full_frac;
  if (share < 1.0) {
    skipping = find(true);
    const bool comparable = !skipping.grid.empty() && skipping.bucket == full.bucket &&
                            full.grid.HasFirst(op.num_heads) &&
                            skipping.grid.HasFirst(op.num_heads);
    if (!HasSkipRows(*table) || (db.backend() == "vllm" && !comparable)) {
      share = 1.0;
    }
  }
  return [=, heads = op.num_heads, context = op.context, full = std::move(full.grid),
          skipping = std::move(skipping.grid), full_sol = DsaGridSol(op, db, *rates, false),
          skip_sol = DsaGridSol(op, db, *rates, true)](const PassQuery& query) -> Timed {
    const Coordinates at = context ? Coordinates{heads, query.prefix, query.tokens, query.batch}
                                   : Coordinates{heads, query.batch, query.tokens};
    const auto whole = full.At(at, full_sol);
    if (!whole) {
      return MissingData(missing);
    }
    if (share >= 1.0) {
      return *whole;
    }
    const auto part = skipping.At(at, skip_sol);
    if (!part) {
      return MissingData(missing);
    }
    return share * *whole + (1.0 - share) * *part;
  };
}

OpTimer Compile(const MsaOp& op, PerfDatabase& db) {
  const auto rates = FindRates(
      db, {.gemm = op.gemm_quant_mode, .kv = op.kv_cache_dtype, .attention = op.fmha_quant_mode});
  if (!rates) {
    return Always(std::unexpected(rates.error()));
  }
  constexpr std::string_view kArchitecture = "MiniMaxM3ForCausalLM";
  const Table* const table = db.Find(op.context ? "msa_context" : "msa_generation");
  Grid grid = op.context ? FindModule(table, kContextAxes, false, kArchitecture, op.fmha_quant_mode,
                                      op.kv_cache_dtype, op.gemm_quant_mode)
                               .grid
                         : FindModule(table, kMsaGenerationAxes, false, kArchitecture,
                                      op.kv_cache_dtype, op.gemm_quant_mode)
                               .grid;
  const std::string missing =
      fmt::format("block-sparse attention data missing for attention {}, KV cache {}, GEMM {}",
                  op.fmha_quant_mode, op.kv_cache_dtype, op.gemm_quant_mode);
  if (grid.empty()) {
    return Always(MissingData(missing));
  }
  // Least time of `tokens` new tokens whose attention reads `length` cached ones per sequence.
  const auto least = [r = *rates, h = op.hidden_size, kv = op.num_kv_heads, hd = op.head_dim](
                         std::uint64_t n, std::uint64_t batch, std::uint64_t tokens,
                         std::uint64_t length, std::uint64_t pairs) {
    const std::uint64_t gemm_ops = 2 * tokens * h * n * hd + 4 * tokens * h * kv * hd +
                                   2 * tokens * n * MsaOp::kValueDim * h +
                                   2 * tokens * h * MsaOp::kIndexHeads * MsaOp::kIndexDim;
    const std::uint64_t attention_ops = 2 * n * (hd + MsaOp::kValueDim) * pairs;
    const std::uint64_t blocks =
        length > MsaOp::kTopK ? (length + MsaOp::kBlock - 1) / MsaOp::kBlock : 0;
    const std::uint64_t index_ops = 2 * tokens * MsaOp::kIndexHeads * MsaOp::kIndexDim * blocks;
    const double bytes =
        ToDouble(h * n * hd + 2 * h * kv * hd + n * MsaOp::kValueDim * h +
                 h * MsaOp::kIndexHeads * MsaOp::kIndexDim) *
            r.gemm_bytes +
        ToDouble(batch * kv * std::min(length, MsaOp::kTopK) * (hd + MsaOp::kValueDim)) *
            r.kv_bytes +
        ToDouble(batch * blocks * MsaOp::kIndexHeads * MsaOp::kIndexDim) +
        ToDouble(tokens * n * hd) * r.attention_bytes * 2.0;
    return std::max((ToDouble(gemm_ops) / r.gemm_flops + ToDouble(index_ops) / r.index_flops +
                     ToDouble(attention_ops) / r.attention_flops) *
                        1000.0,
                    bytes / r.mem_bw * 1000.0);
  };
  GridSol sol;
  if (op.context) {
    sol = [least](const Coordinates& at) {
      return least(at[0], at[3], at[3] * at[2], at[1] + at[2],
                   LimitedPairs(at[3], at[2], at[1], MsaOp::kTopK));
    };
  } else {
    sol = [least](const Coordinates& at) {
      const std::uint64_t cached = at[2] > 0 ? at[2] - 1 : 0;
      return least(at[0], at[1], at[1], cached, at[1] * std::min(cached, MsaOp::kTopK));
    };
  }
  return [=, heads = op.num_heads, context = op.context,
          grid = std::move(grid)](const PassQuery& query) -> Timed {
    const auto value = context ? grid.At({heads, query.prefix, query.tokens, query.batch}, sol)
                               : grid.At({heads, query.batch, query.tokens}, sol);
    if (!value) {
      return MissingData(missing);
    }
    return *value;
  };
}

}  // namespace dynosim::timing
