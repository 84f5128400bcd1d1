// SPDX-License-Identifier: Apache-2.0
// Attention of standard transformers. A shape is one key of the table; several kernels may have
// measured it, and the first one of the lane order that has the key is taken.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/numeric.h"
#include "perfdb/grid.h"
#include "perfdb/system_spec.h"
#include "perfdb/table.h"
#include "timing/op_level/database.h"
#include "timing/op_level/modes.h"
#include "timing/op_level/op_timer.h"
#include "timing/op_level/operation.h"

namespace dynosim::timing {
namespace {

using perfdb::Coordinates;
using perfdb::Grid;
using perfdb::Rows;
using perfdb::Table;

// Rows of a key in the first kernel that has it; the rest of the key follows the kernel's name.
template <class... Key>
Rows FirstLane(PerfDatabase& db, const Table& table, const std::vector<std::string>& order,
               const Key&... key) {
  std::vector<std::string> lanes = order;
  for (std::string& lane : db.LanesOf(table.name())) {
    lanes.push_back(std::move(lane));
  }
  for (const std::string& lane : lanes) {
    const Rows rows = Select(table, lane, key...);
    if (!rows.empty()) {
      return rows;
    }
  }
  return {};
}

}  // namespace

OpTimer Compile(const ContextAttentionOp& op, PerfDatabase& db) {
  const auto flops = db.Flops(op.fmha_quant_mode);
  if (!flops) {
    return Always(MissingFlops(db, op.fmha_quant_mode));
  }
  const Table* const table = db.Find("context_attention");
  const std::uint64_t kv_key = op.n == op.n_kv ? 0 : op.n_kv;
  Grid grid;
  if (table != nullptr) {
    constexpr std::array<std::size_t, 3> kAxes = {6, 7, 8};
    grid = Grid::FromRows(*table,
                          FirstLane(db, *table, op.lane_order, op.fmha_quant_mode,
                                    op.kv_cache_dtype, kv_key, op.head_size, op.window_size),
                          kAxes);
  }
  const std::string missing = fmt::format(
      "context attention data missing for {} query heads, {} KV heads of {}, window {}, attention "
      "{}, KV cache {}",
      op.n, op.n_kv, op.head_size, op.window_size, op.fmha_quant_mode, op.kv_cache_dtype);
  if (grid.empty()) {
    return Always(MissingData(missing));
  }
  const perfdb::SystemSpec system = db.system();
  const double h = ToDouble(op.head_size);
  const double kv_bytes = BytesOf(op.kv_cache_dtype);
  const double w = ToDouble(op.window_size);
  const perfdb::GridSol sol = [=, f = *flops](const Coordinates& at) {
    const double n = ToDouble(at[0]);
    const double q = ToDouble(at[1]);
    const double b = ToDouble(at[2]);
    const double kv = kv_key == 0 ? n : ToDouble(kv_key);
    const double ops = w > 0.0 && q > w ? 2.0 * b * q * w * n * h * 2.0 : 2.0 * b * q * q * n * h;
    const double bytes = 2.0 * b * (2.0 * n * q * h) + kv_bytes * b * 2.0 * kv * q * h;
    return std::max(ops / f * 1000.0, bytes / system.mem_bw * 1000.0);
  };
  // Normalization, rotary embedding and the cache write: kernels of a size that does not matter.
  const double query_size = ToDouble(op.n * op.head_size);
  const double key_size = ToDouble(op.n_kv * op.head_size);
  double extra = 0.0;
  if (op.use_qk_norm) {
    extra += 2.0 * (2.0 * system.MoveMs(query_size * 2.0) + 2.0 * system.MoveMs(key_size * 2.0));
  }
  if (op.apply_rope) {
    extra += 2.0 * system.MoveMs(query_size * 2.0 + key_size * 2.0);
  }
  extra += 2.0 * system.MoveMs(key_size * BytesOf(op.fmha_quant_mode));
  return [=, n = op.n, grid = std::move(grid)](const PassQuery& query) -> Timed {
    const std::uint64_t full = query.tokens + query.prefix;
    const auto whole = grid.At({n, full, query.batch}, sol, 1);
    if (!whole) {
      return MissingData(missing);
    }
    const double square = ToDouble(full) * ToDouble(full);
    const double cached = ToDouble(query.prefix) * ToDouble(query.prefix);
    return *whole * ((square - cached) / square) + 1.1 * extra;
  };
}

OpTimer Compile(const GenerationAttentionOp& op, PerfDatabase& db) {
  const bool fp8 = op.kv_cache_dtype == "fp8" && db.system().sm_version >= 89;
  const std::string_view mode = fp8 ? "fp8" : "bfloat16";
  const auto flops = db.Flops(mode);
  const Table* const table = db.Find("generation_attention");
  const std::uint64_t kv_key = op.n == op.n_kv ? 0 : op.n_kv;
  const double mem_bw = db.system().mem_bw;
  const double h = ToDouble(op.head_size);
  const double w = ToDouble(op.window_size);
  const double kv_bytes = BytesOf(op.kv_cache_dtype);
  const perfdb::GridSol sol = [=, f = flops.value_or(1.0)](const Coordinates& at) {
    const double n = ToDouble(at[0]);
    const double b = ToDouble(at[1]);
    const double q = ToDouble(at[2]);
    const double kv = kv_key == 0 ? n : ToDouble(kv_key);
    const double length = w > 0.0 ? std::min(q - 1.0, w) : q - 1.0;
    return std::max(2.0 * b * n * h * 2.0 * length / f * 1000.0,
                    b * (n * h * 4.0 + 2.0 * kv * length * h * kv_bytes) / mem_bw * 1000.0);
  };
  Grid grid;
  if (table != nullptr) {
    constexpr std::array<std::size_t, 3> kAxes = {5, 6, 7};
    grid = Grid::FromRows(*table,
                          FirstLane(db, *table, op.lane_order, op.kv_cache_dtype, kv_key,
                                    op.head_size, op.window_size),
                          kAxes, [&](double measured, const Coordinates& at) {
                            return flops ? std::max(measured, sol(at)) : measured;
                          });
    grid.Rate(sol);
  }
  const std::string missing = fmt::format(
      "generation attention data missing for {} query heads, {} KV heads of {}, window {}, KV "
      "cache "
      "{}",
      op.n, op.n_kv, op.head_size, op.window_size, op.kv_cache_dtype);
  if (grid.empty()) {
    return Always(MissingData(missing));
  }
  if (!flops) {
    return Always(MissingFlops(db, mode));
  }
  double extra = 0.0;
  if (op.use_qk_norm) {
    const perfdb::SystemSpec& system = db.system();
    extra = (2.0 * system.MoveMs(ToDouble(op.n * op.head_size) * 2.0) +
             2.0 * system.MoveMs(ToDouble(op.n_kv * op.head_size) * 2.0)) *
            2.2;
  }
  return [=, n = op.n, grid = std::move(grid)](const PassQuery& query) -> Timed {
    // The mean over lengths around the asked one smooths steps of the measurements.
    constexpr std::uint64_t kSamples = 5;
    const double length = ToDouble(query.tokens);
    const std::uint64_t low =
        std::max<std::uint64_t>(SaturatingCast<std::uint64_t>(length * 0.9), 1);
    const std::uint64_t high = std::max(SaturatingCast<std::uint64_t>(length * 1.1), low);
    Grid::Nearby nearby;
    double sum = 0.0;
    for (std::uint64_t i = 0; i < kSamples; ++i) {
      const auto value = grid.At({n, query.batch, low + (high - low) * i / 4}, sol, nearby);
      if (!value) {
        return MissingData(missing);
      }
      sum += *value;
    }
    return sum / ToDouble(kSamples) + extra;
  };
}

}  // namespace dynosim::timing
