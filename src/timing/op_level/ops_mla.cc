// SPDX-License-Identifier: Apache-2.0
// Multi-head latent attention: whole measured modules, and the kernels they consist of.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
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

namespace dynosim::timing {
namespace {

using perfdb::Coordinates;
using perfdb::Grid;
using perfdb::GridSol;
using perfdb::Rows;
using perfdb::Table;

GridSol ContextSol(double kv_bytes, double flops, double mem_bw) {
  return [=](const Coordinates& at) {
    const double n = ToDouble(at[0]);
    const double q = ToDouble(at[1]);
    const double b = ToDouble(at[2]);
    return std::max(b * n * 320.0 * q * q / flops * 1000.0,
                    b * n * (kv_bytes * q * 320.0 + 2.0 * q * 320.0) / mem_bw * 1000.0);
  };
}

// The GEMMs inside of a generation module, when it is one.
struct ModuleGemm {
  double flops = 0.0;
  double bytes = 0.0;
};

GridSol GenerationSol(double kv_bytes, double flops, double mem_bw,
                      std::optional<ModuleGemm> gemm) {
  return [=](const Coordinates& at) {
    const double n = ToDouble(at[0]);
    const double b = ToDouble(at[1]);
    const double length = ToDouble(at[2]);
    double math = 2.0 * b * n * 1088.0 * length / flops * 1000.0;
    double memory = b * (n * 1088.0 * 2.0 + (length - 1.0) * 576.0 * kv_bytes) / mem_bw * 1000.0;
    if (gemm) {
      math += 4.0 * b * n * 65536.0 / gemm->flops * 1000.0;
      memory += 2.0 * n * (b * 640.0 + 65536.0) * gemm->bytes / mem_bw * 1000.0;
    }
    return std::max(math, memory);
  };
}

OpTimer ContextTimer(std::uint64_t heads, Grid grid, GridSol sol, std::string missing) {
  if (grid.empty()) {
    return Always(MissingData(std::move(missing)));
  }
  return [heads, grid = std::move(grid), sol = std::move(sol),
          missing = std::move(missing)](const PassQuery& query) -> Timed {
    const std::uint64_t full = query.tokens + query.prefix;
    const auto whole = grid.At({heads, full, query.batch}, sol, 1);
    if (!whole) {
      return MissingData(missing);
    }
    const double square = ToDouble(full) * ToDouble(full);
    const double cached = ToDouble(query.prefix) * ToDouble(query.prefix);
    return *whole * ((square - cached) / square);
  };
}

OpTimer GenerationTimer(std::uint64_t heads, Grid grid, GridSol sol, std::string missing) {
  if (grid.empty()) {
    return Always(MissingData(std::move(missing)));
  }
  return [heads, grid = std::move(grid), sol = std::move(sol),
          missing = std::move(missing)](const PassQuery& query) -> Timed {
    const auto value = grid.At({heads, query.batch, query.tokens}, sol);
    if (!value) {
      return MissingData(missing);
    }
    return *value;
  };
}

std::string_view GenerationMode(const PerfDatabase& db, std::string_view kv) {
  return kv == "fp8" && db.system().sm_version >= 89 ? "fp8" : "bfloat16";
}

OpTimer CompileContextModule(const MlaModuleOp& op, PerfDatabase& db) {
  const Table* const table = db.Find("mla_context_module");
  const auto flops = db.Flops(op.fmha_quant_mode);
  constexpr std::array<std::size_t, 3> kAxes = {4, 5, 6};
  Grid grid;
  if (table != nullptr) {
    const Rows rows = Select(*table, op.fmha_quant_mode, op.kv_cache_dtype, op.gemm_quant_mode);
    grid = Grid::FromRows(*table, NearestRows(*table, rows, 3, op.native_num_heads), kAxes);
  }
  if (!grid.empty() && !flops) {
    return Always(MissingFlops(db, op.fmha_quant_mode));
  }
  return ContextTimer(
      op.num_heads, std::move(grid),
      ContextSol(BytesOf(op.kv_cache_dtype), flops.value_or(1.0), db.system().mem_bw),
      fmt::format("MLA context module data missing for attention {}, KV cache {}, GEMM {}",
                  op.fmha_quant_mode, op.kv_cache_dtype, op.gemm_quant_mode));
}

OpTimer CompileGenerationModule(const MlaModuleOp& op, PerfDatabase& db) {
  const Table* const table = db.Find("mla_generation_module");
  const std::string_view mode = GenerationMode(db, op.kv_cache_dtype);
  const auto flops = db.Flops(mode);
  const auto gemm_flops = db.Flops(op.gemm_quant_mode);
  constexpr std::array<std::size_t, 3> kAxes = {3, 4, 5};
  Grid grid;
  if (table != nullptr) {
    const Rows rows = Select(*table, op.kv_cache_dtype, op.gemm_quant_mode);
    grid = Grid::FromRows(*table, NearestRows(*table, rows, 2, op.native_num_heads), kAxes);
  }
  if (!grid.empty() && (!flops || !gemm_flops)) {
    return Always(MissingFlops(db, flops ? std::string_view(op.gemm_quant_mode) : mode));
  }
  return GenerationTimer(
      op.num_heads, std::move(grid),
      GenerationSol(
          BytesOf(op.kv_cache_dtype), flops.value_or(1.0), db.system().mem_bw,
          ModuleGemm{.flops = gemm_flops.value_or(1.0), .bytes = BytesOf(op.gemm_quant_mode)}),
      fmt::format("MLA generation module data missing for KV cache {}, GEMM {}", op.kv_cache_dtype,
                  op.gemm_quant_mode));
}

}  // namespace

OpTimer Compile(const MlaModuleOp& op, PerfDatabase& db) {
  return op.context ? CompileContextModule(op, db) : CompileGenerationModule(op, db);
}

OpTimer Compile(const ContextMlaOp& op, PerfDatabase& db) {
  const Table* const table = db.Find("context_mla");
  const auto flops = db.Flops(op.fmha_quant_mode);
  constexpr std::array<std::size_t, 3> kAxes = {2, 3, 4};
  Grid grid;
  if (table != nullptr) {
    grid = Grid::FromRows(*table, Select(*table, op.fmha_quant_mode, op.kv_cache_dtype), kAxes);
  }
  if (!grid.empty() && !flops) {
    return Always(MissingFlops(db, op.fmha_quant_mode));
  }
  return ContextTimer(
      op.num_heads, std::move(grid),
      ContextSol(BytesOf(op.kv_cache_dtype), flops.value_or(1.0), db.system().mem_bw),
      fmt::format("context MLA data missing for attention {}, KV cache {}", op.fmha_quant_mode,
                  op.kv_cache_dtype));
}

OpTimer Compile(const GenerationMlaOp& op, PerfDatabase& db) {
  const Table* const table = db.Find("generation_mla");
  const std::string_view mode = GenerationMode(db, op.kv_cache_dtype);
  const auto flops = db.Flops(mode);
  constexpr std::array<std::size_t, 3> kAxes = {1, 2, 3};
  Grid grid;
  if (table != nullptr) {
    grid = Grid::FromRows(*table, Select(*table, op.kv_cache_dtype), kAxes);
  }
  if (!grid.empty() && !flops) {
    return Always(MissingFlops(db, mode));
  }
  return GenerationTimer(
      op.num_heads, std::move(grid),
      GenerationSol(BytesOf(op.kv_cache_dtype), flops.value_or(1.0), db.system().mem_bw, {}),
      fmt::format("generation MLA data missing for KV cache {}", op.kv_cache_dtype));
}

OpTimer Compile(const MlaBmmOp& op, PerfDatabase& db) {
  const Table* const table = db.Find("mla_bmm");
  const std::string_view kernel = op.is_pre ? "mla_gen_pre" : "mla_gen_post";
  const std::string missing = fmt::format("MLA matrix product data missing for {} heads in mode {}",
                                          op.num_heads, op.quant_mode);
  if (table == nullptr) {
    return Always(MissingData(missing));
  }
  Rows rows = Select(*table, op.quant_mode, kernel);
  if (rows.empty()) {
    rows = Select(*table, "bfloat16", kernel);
  }
  // Head counts between powers of two take a share of the next one.
  std::uint64_t heads = op.num_heads;
  double share = 1.0;
  if (!std::has_single_bit(heads) && table->Narrow(rows, 2, heads).empty()) {
    heads = std::bit_ceil(heads);
    share = ToDouble(op.num_heads) / ToDouble(heads);
  }
  constexpr std::array<std::size_t, 1> kAxes = {3};
  Grid grid = Grid::FromRows(*table, table->Narrow(rows, 2, heads), kAxes);
  if (grid.empty()) {
    return Always(MissingData(missing));
  }
  const auto flops = db.Flops(op.quant_mode);
  if (!flops) {
    return Always(MissingFlops(db, op.quant_mode));
  }
  const double bytes = BytesOf(op.quant_mode);
  const double n = ToDouble(heads);
  const GridSol sol = [=, f = *flops, mem_bw = db.system().mem_bw](const Coordinates& at) {
    const double t = ToDouble(at[0]);
    return std::max(2.0 * t * n * 65536.0 / f * 1000.0,
                    n * (t * 640.0 + 65536.0) * bytes / mem_bw * 1000.0);
  };
  return [=, grid = std::move(grid)](const PassQuery& query) -> Timed {
    const auto value = grid.At({query.batch}, sol);
    if (!value) {
      return MissingData(missing);
    }
    return *value * share;
  };
}

}  // namespace dynosim::timing
