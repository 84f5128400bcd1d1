// SPDX-License-Identifier: Apache-2.0
// Embedding, elementwise kernels, GEMM. The first two are memory traffic; a GEMM is interpolated
// between measured shapes (perfdb/sites.h).
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "perfdb/grid.h"
#include "perfdb/sites.h"
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

// Cost of preparing FP8 inputs, measured over (m, k). Outside of the measured range the edge is
// taken, and for some tables scaled by the least time.
class ScaleTable {
 public:
  // `traffic` is the bytes per element; `extrapolate` says whether to scale beyond the edge.
  static std::optional<ScaleTable> Load(PerfDatabase& db, std::string_view name, double traffic,
                                        bool extrapolate) {
    const perfdb::Table* const table = db.Find(name);
    if (table == nullptr) {
      return std::nullopt;
    }
    constexpr std::array<std::size_t, 2> kAxes = {1, 2};
    ScaleTable out;
    out.grid_ = Grid::FromRows(*table, Select(*table, "fp8"), kAxes);
    if (out.grid_.empty()) {
      return std::nullopt;
    }
    out.extrapolate_ = extrapolate;
    const double mem_bw = db.system().mem_bw;
    out.sol_ = [traffic, mem_bw](const Coordinates& at) {
      return traffic * ToDouble(at[0]) * ToDouble(at[1]) / mem_bw * 1000.0;
    };
    return out;
  }

  std::optional<double> At(std::uint64_t m, std::uint64_t k) const {
    const auto clamp = [](std::uint64_t value, std::span<const std::uint64_t> keys) {
      return std::clamp(value, *std::min_element(keys.begin(), keys.end()),
                        *std::max_element(keys.begin(), keys.end()));
    };
    const Coordinates inside = {clamp(m, grid_.KeysOf(0)), clamp(k, grid_.KeysOf(1))};
    auto value = grid_.At(inside, sol_);
    if (value && extrapolate_ && (inside[0] != m || inside[1] != k)) {
      *value *= sol_({m, k}) / sol_(inside);
    }
    return value;
  }

 private:
  Grid grid_;
  perfdb::GridSol sol_;
  bool extrapolate_ = false;
};

// Tables measure FP8 with the scaling of the inputs; a static scheme has that outside of the GEMM.
struct StaticScaling {
  std::optional<ScaleTable> compute;
  std::optional<ScaleTable> matrix;
  bool low_precision_input = false;

  std::optional<double> Overhead(std::uint64_t m, std::uint64_t k, double base) const {
    const auto first = compute ? compute->At(m, k) : std::nullopt;
    if (!first) {
      return std::nullopt;
    }
    double value = base - *first;
    if (low_precision_input) {
      const auto second = matrix ? matrix->At(m, k) : std::nullopt;
      if (!second) {
        return std::nullopt;
      }
      value -= *second;
    }
    return value;
  }
};

}  // namespace

OpTimer Compile(const EmbeddingOp& op, PerfDatabase& db) {
  const perfdb::SystemSpec& system = db.system();
  const double hidden = ToDouble(op.hidden_size);
  return [=](const PassQuery& query) -> Timed {
    return system.MoveMs(ToDouble(query.Flow()) * hidden * 2.0);
  };
}

OpTimer Compile(const ElementwiseOp& op, PerfDatabase& db) {
  const perfdb::SystemSpec& system = db.system();
  const double bytes = op.bytes_per_token;
  return [=](const PassQuery& query) -> Timed {
    return system.MoveMs(bytes * ToDouble(query.Flow()));
  };
}

OpTimer Compile(const GemmOp& op, PerfDatabase& db, bool last_token_only) {
  const bool is_static = op.quant_mode == "fp8_static";
  const std::string measured = is_static ? "fp8" : op.quant_mode;
  const perfdb::GemmSites* const sites = db.Gemms(measured);
  if (sites == nullptr) {
    return Always(MissingData(fmt::format("GEMM data missing for quant '{}'", op.quant_mode)));
  }
  if (!db.Flops(measured)) {
    return Always(MissingFlops(db, op.quant_mode));
  }
  StaticScaling scaling{.compute = {}, .matrix = {}, .low_precision_input = op.low_precision_input};
  if (is_static) {
    scaling.compute = ScaleTable::Load(db, "computescale", 2.0, false);
    scaling.matrix = ScaleTable::Load(db, "scale_matrix", 3.0, true);
  }
  const auto shape = std::make_shared<perfdb::GemmShape>(*sites, op.n, op.k);
  return [=](const PassQuery& query) -> Timed {
    const std::uint64_t m = last_token_only ? query.batch : query.Flow();
    const auto least = [&] { return sites->sol()(ToDouble(m), ToDouble(op.n), ToDouble(op.k)); };
    std::optional<double> time = shape->At(m);
    if (!time && op.below_grid_sol) {
      time = least();
    }
    if (!time) {
      return MissingData(fmt::format("GEMM data missing near m={} n={} k={} for quant '{}'", m,
                                     op.n, op.k, op.quant_mode));
    }
    if (is_static) {
      time = scaling.Overhead(m, op.k, *time);
      if (!time) {
        return MissingData("data of the FP8 scaling kernels is missing");
      }
      time = std::max(*time, least());
    }
    return *time;
  };
}

}  // namespace dynosim::timing
