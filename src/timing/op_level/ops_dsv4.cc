// SPDX-License-Identifier: Apache-2.0
// DeepSeek-V4: compressed attention modules, their correction for how the top tokens are chosen,
// and hyper-connections.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "perfdb/grid.h"
#include "perfdb/table.h"
#include "timing/op_level/database.h"
#include "timing/op_level/modes.h"
#include "timing/op_level/nearest_rows.h"
#include "timing/op_level/op_timer.h"
#include "timing/op_level/operation.h"
#include "timing/op_level/token_pairs.h"

namespace dynosim::timing {
namespace {

using perfdb::Coordinates;
using perfdb::Grid;
using perfdb::Rows;
using perfdb::Table;

// How much a module gains when the top tokens are the last ones, over (batch, length, prefix).
// Between and beyond the measured points it is interpolated axis by axis, clamped at the ends.
class TopKGain {
 public:
  // `version` is "v1" (context) or "v2" (generation).
  static TopKGain Load(PerfDatabase& db, std::string_view version, std::uint64_t heads) {
    TopKGain out;
    const Table* const table = db.Find("dsv4_topk");
    if (table == nullptr) {
      return out;
    }
    const Rows flat = Select(*table, fmt::format("{}_flat", version), heads);
    const Rows last = Select(*table, fmt::format("{}_top_last", version), heads);
    for (std::size_t row = flat.begin; row < flat.end; ++row) {
      Rows same = last;
      for (std::size_t column = 2; column <= 4; ++column) {
        same = table->Narrow(same, column, table->column(column).At(row));
      }
      if (!same.empty()) {
        const double gain =
            table->latency().LatencyAt(row) - table->latency().LatencyAt(same.begin);
        out.tree_[table->column(2).At(row)][table->column(3).At(row)][table->column(4).At(row)] =
            std::max(gain, 0.0);
      }
    }
    return out;
  }

  double At(std::uint64_t batch, std::uint64_t length, std::uint64_t prefix) const {
    if (tree_.empty()) {
      return 0.0;
    }
    return Clamped(tree_, batch, [&](const auto& by_length) {
      return Clamped(by_length, length, [&](const auto& by_prefix) {
        return Clamped(by_prefix, prefix, [](double gain) { return gain; });
      });
    });
  }

 private:
  template <class Map, class Inner>
  static double Clamped(const Map& map, std::uint64_t at, const Inner& inner) {
    const auto above = map.lower_bound(at);
    if (above == map.end()) {
      return inner(std::prev(above)->second);
    }
    if (above->first == at || above == map.begin()) {
      return inner(above->second);
    }
    const auto below = std::prev(above);
    const double weight = ToDouble(at - below->first) / ToDouble(above->first - below->first);
    return inner(below->second) * (1.0 - weight) + inner(above->second) * weight;
  }

  std::map<std::uint64_t, std::map<std::uint64_t, std::map<std::uint64_t, double>>> tree_;
};

struct Dsv4Rates {
  double gemm_flops = 0.0, bfloat16_flops = 0.0, fp8_flops = 0.0, attention_flops = 0.0;
  double mem_bw = 0.0, gemm_bytes = 0.0, kv_bytes = 0.0, attention_bytes = 0.0;
};

// Least time of one module, over (prefix, new tokens, batch) or (batch, length).
class Dsv4Sol {
 public:
  Dsv4Sol(const Dsv4Op& op, const Dsv4Rates& rates) : op_(op), r_(rates) {}

  double Context(std::uint64_t prefix, std::uint64_t added, std::uint64_t batch) const {
    const std::uint64_t length = prefix + added;
    const std::uint64_t limit = op_.csa ? op_.index_topk : length / Ratio();
    return Time(batch, batch * added, length,
                LimitedPairs(batch, added, prefix, op_.window_size) +
                    CompressedPairs(batch, added, prefix, Ratio(), limit));
  }
  double Generation(std::uint64_t batch, std::uint64_t kv_length) const {
    const std::uint64_t length = kv_length > 0 ? kv_length - 1 : 0;
    const std::uint64_t limit = op_.csa ? op_.index_topk : length / Ratio();
    return Time(
        batch, batch, length,
        batch * std::min(length, op_.window_size) + batch * std::min(length / Ratio(), limit));
  }

 private:
  std::uint64_t Ratio() const { return op_.csa ? 4 : 128; }

  double Time(std::uint64_t batch, std::uint64_t t, std::uint64_t length,
              std::uint64_t pairs) const {
    const std::uint64_t h = op_.hidden_size, ql = op_.q_lora_rank, ol = op_.o_lora_rank;
    const std::uint64_t hd = op_.head_dim, n = op_.num_heads, groups = op_.o_groups;
    const std::uint64_t inh = op_.index_n_heads, ihd = op_.index_head_dim;
    const std::uint64_t streams = op_.csa ? 2 : 1;
    const std::uint64_t project =
        2 * t * h * ql + 2 * t * ql * n * hd + 2 * t * h * hd + 2 * t * groups * ol * h;
    const std::uint64_t out = 2 * t * n * hd * ol;
    std::uint64_t compress = 4 * t * h * streams * hd + 2 * t * streams * hd;
    std::uint64_t index = 0, index_bfloat16 = 0;
    std::uint64_t weights = h * ql + ql * n * hd + h * hd + groups * ol * h + 2 * h * streams * hd;
    std::uint64_t weights_bfloat16 = n * hd * ol;
    double index_bytes = 0.0;
    if (op_.csa) {
      const std::uint64_t compressed = length / 4;
      compress += 8 * t * h * ihd + 4 * t * ihd;
      index = 2 * t * ql * inh * ihd + 2 * t * compressed * inh * ihd;
      index_bfloat16 = 2 * t * h * inh;
      index_bytes = ToDouble(batch * compressed * ihd) * 0.5;
      weights += ql * inh * ihd;
      weights_bfloat16 += h * inh;
    }
    const double bytes = ToDouble(weights) * r_.gemm_bytes + ToDouble(weights_bfloat16) * 2.0 +
                         ToDouble(t * (h + ql + n * hd + hd + groups * ol)) * r_.gemm_bytes +
                         ToDouble(pairs * hd) * r_.kv_bytes + index_bytes +
                         ToDouble(t * n * op_.rope_head_dim) * r_.attention_bytes;
    const double math = ToDouble(project + compress) / r_.gemm_flops +
                        ToDouble(out + index_bfloat16) / r_.bfloat16_flops +
                        ToDouble(index) / r_.fp8_flops +
                        ToDouble(4 * n * hd * pairs) / r_.attention_flops;
    return std::max(math * 1000.0, bytes / r_.mem_bw * 1000.0);
  }

  Dsv4Op op_;
  Dsv4Rates r_;
};

std::string_view AttentionMode(const Dsv4Op& op, const PerfDatabase& db) {
  if (op.context) {
    return op.fmha_quant_mode;
  }
  return op.kv_cache_dtype == "fp8" && db.system().sm_version >= 89 ? "fp8" : "bfloat16";
}

Grid FindGrid(const Dsv4Op& op, PerfDatabase& db) {
  const Table* const table = db.Find(
      fmt::format("dsv4_{}_{}", op.csa ? "csa" : "hca", op.context ? "context" : "generation"));
  if (table == nullptr) {
    return {};
  }
  const std::size_t native = op.context ? 3 : 2;
  Rows rows = op.context ? Select(*table, op.fmha_quant_mode, op.kv_cache_dtype, op.gemm_quant_mode)
                         : Select(*table, op.kv_cache_dtype, op.gemm_quant_mode);
  rows = NearestRows(*table, rows, native, op.native_heads);
  rows = NearestRows(*table, rows, native + 1, op.num_heads);
  constexpr std::array<std::size_t, 3> kContextAxes = {5, 6, 7};
  constexpr std::array<std::size_t, 2> kGenerationAxes = {4, 5};
  return op.context ? Grid::FromRows(*table, rows, kContextAxes)
                    : Grid::FromRows(*table, rows, kGenerationAxes);
}

}  // namespace

OpTimer Compile(const Dsv4Op& op, PerfDatabase& db) {
  const std::string_view mode = AttentionMode(op, db);
  const auto gemm = db.Flops(op.gemm_quant_mode);
  const auto bfloat16 = db.Flops("bfloat16");
  const auto fp8 = db.Flops("fp8");
  const auto attention = db.Flops(mode);
  if (!gemm || !bfloat16 || !fp8 || !attention) {
    return Always(MissingFlops(db, !gemm  ? std::string_view(op.gemm_quant_mode)
                                   : !fp8 ? "fp8"
                                          : mode));
  }
  Grid grid = FindGrid(op, db);
  const std::string missing = fmt::format(
      "compressed attention data missing for ratio {}, attention {}, KV cache {}, GEMM {}",
      op.csa ? 4 : 128, op.fmha_quant_mode, op.kv_cache_dtype, op.gemm_quant_mode);
  if (grid.empty()) {
    return Always(MissingData(missing));
  }
  const Dsv4Sol sol(op, {.gemm_flops = *gemm,
                         .bfloat16_flops = *bfloat16,
                         .fp8_flops = *fp8,
                         .attention_flops = *attention,
                         .mem_bw = db.system().mem_bw,
                         .gemm_bytes = BytesOf(op.gemm_quant_mode),
                         .kv_bytes = BytesOf(op.kv_cache_dtype),
                         .attention_bytes = BytesOf(mode)});
  TopKGain gain;
  if (op.csa) {
    gain = TopKGain::Load(db, op.context ? "v1" : "v2", op.native_heads);
  }
  return [=, context = op.context, grid = std::move(grid),
          gain = std::move(gain)](const PassQuery& query) -> Timed {
    const auto value =
        context
            ? grid.At({query.prefix, query.tokens, query.batch},
                      [&sol](const Coordinates& at) { return sol.Context(at[0], at[1], at[2]); })
            : grid.At({query.batch, query.tokens},
                      [&sol](const Coordinates& at) { return sol.Generation(at[0], at[1]); });
    if (!value) {
      return MissingData(missing);
    }
    const double saved = context ? gain.At(query.batch, query.tokens, query.prefix)
                                 : gain.At(query.batch, 1, query.tokens > 0 ? query.tokens - 1 : 0);
    return std::max(*value - saved, 0.0);
  };
}

OpTimer Compile(const MhcOp& op, PerfDatabase& db) {
  const Table* const table = db.Find("mhc");
  const auto flops = db.Flops("bfloat16");
  if (!flops) {
    return Always(MissingFlops(db, "bfloat16"));
  }
  perfdb::Curve curve;
  if (table != nullptr) {
    curve = perfdb::Curve::FromRows(*table, Select(*table, op.op, op.hc_mult, op.hidden_size), 3);
  }
  const double hc = ToDouble(op.hc_mult);
  const double h = ToDouble(op.hidden_size);
  const double iterations = ToDouble(op.sinkhorn_iters);
  const bool pre = op.op == "pre";
  const perfdb::CurveSol sol = [=, f = *flops, mem_bw = db.system().mem_bw](double tokens) {
    const double t = std::round(tokens);
    const double hd = hc * h;
    const double mix = (2.0 + hc) * hc;
    const double ops = pre ? 2.0 * (2.0 * t * hd * mix + 3.0 * t * hd +
                                    t * (hc * hc + 2.0 * hc) * iterations + 2.0 * t * hc * h)
                           : 2.0 * (2.0 * t * hc * hc * h + 2.0 * t * hc * h);
    const double bytes = 2.0 * (mix * hd + mix + 3.0) * 2.0 + 2.0 * t * hd * 2.0 * 2.0 +
                         (pre ? 2.0 * t * (2.0 * hc + hc * hc) * 4.0 : 0.0);
    return std::max(ops / f, bytes / mem_bw) * 1000.0;
  };
  return [=, curve = std::move(curve), kind = op.op](const PassQuery& query) -> Timed {
    const auto value = curve.At(ToDouble(query.Flow()), sol);
    if (!value) {
      return MissingData(
          fmt::format("hyper-connection data missing for {} of {} x {}", kind, hc, h));
    }
    return *value;
  };
}

}  // namespace dynosim::timing
