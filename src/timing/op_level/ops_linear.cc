// SPDX-License-Identifier: Apache-2.0
// Linear attention and state-space kernels. Where nothing usable is measured they cost their least
// time, so they never fail. A cached prefix changes nothing, and neither does the context length in
// the generation phase.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perfdb/grid.h"
#include "perfdb/table.h"
#include "timing/op_level/database.h"
#include "timing/op_level/op_timer.h"
#include "timing/op_level/operation.h"

namespace dynosim::timing {
namespace {

using perfdb::Coordinates;
using perfdb::Grid;
using perfdb::Rows;
using perfdb::Table;

constexpr std::array<std::size_t, 2> kLinearAxes = {8, 9};
constexpr std::array<std::size_t, 2> kMambaAxes = {9, 10};
constexpr std::size_t kChunk = 64;  // tokens whose states are written back together

// Least time in ms for `batch` sequences of `tokens` new tokens (1 in the generation phase).
using StateSol = std::function<double(double batch, double tokens)>;

struct LinearSizes {
  double model = 0.0, conv = 0.0, k_heads = 0.0, k_dim = 0.0, v_heads = 0.0, v_dim = 0.0;
};

LinearSizes SizesOf(const LinearAttentionOp& op) {
  return {.model = ToDouble(op.d_model),
          .conv = ToDouble(op.d_conv),
          .k_heads = ToDouble(op.num_k_heads),
          .k_dim = ToDouble(op.head_k_dim),
          .v_heads = ToDouble(op.num_v_heads),
          .v_dim = ToDouble(op.head_v_dim)};
}

double GdnBytes(const LinearSizes& z, std::string_view kernel, double element, double b, double s) {
  const double x = b * s;
  const double width = 2.0 * z.k_heads * z.k_dim + z.v_heads * z.v_dim;
  const double state = z.v_heads * z.k_dim * z.v_dim;
  if (kernel.starts_with("causal_conv1d")) {
    return x * width * (z.conv + 1.0) * 2.0 + x * width * 2.0;
  }
  if (kernel == "chunk_gated_delta_rule") {
    const double kept = std::floor(s / kChunk) * state * 2.0 * b;
    return (x * width * 2.0 + state * element * b + kept) +
           (x * z.v_heads * z.v_dim * 2.0 + state * element * b + kept);
  }
  if (kernel == "fused_sigmoid_gating_delta_rule_update" ||
      kernel == "flashinfer_gated_delta_rule_decode") {
    const double size = kernel.starts_with("flashinfer") ? 2.0 : element;
    return (x * width * 2.0 + state * size * b) +
           (x * z.v_heads * z.v_dim * 2.0 + state * size * b);
  }
  return 4.0 * x * z.model;
}

double KdaBytes(const LinearSizes& z, std::string_view kernel, double b, double s) {
  const double x = b * s;
  const double values = z.v_heads * z.v_dim;
  const double state = z.v_heads * z.k_dim * z.v_dim * 4.0;
  const double conv_read = x * 3.0 * values * (z.conv + 1.0) * 2.0;
  const double conv_write = x * 3.0 * values * 2.0;
  const double read = x * 4.0 * values * 2.0 + state * b;
  const double written = x * values * 2.0;
  if (kernel == "causal_conv1d_fn_qkv3") {
    return 3.0 * (x * values * (z.conv + 1.0) * 2.0) + 3.0 * (x * values * 2.0);
  }
  if (kernel == "causal_conv1d_update") {
    return conv_read + conv_write;
  }
  if (kernel == "chunk_kda" || kernel == "flashkda_fwd" || kernel == "chunk_kda_with_fused_gate") {
    const double kept = std::floor(s / kChunk) * state * b;
    return (read + kept) + (written + state * b + kept);
  }
  if (kernel == "fused_recurrent_kda_packed_decode" || kernel == "fused_kda_decode") {
    return read + (written + state * b);
  }
  if (kernel == "fused_sigmoid_gating_delta_rule_update" || kernel == "fused_recurrent_kda") {
    return read + (written + state * x);
  }
  if (kernel == "fused_kda_decode_mtp_dspark") {
    return (conv_read + read) + (conv_write + (written + state * x));
  }
  if (kernel == "kda_fused_decode") {
    return (conv_read + read) + (conv_write + (written + state * b));
  }
  return 4.0 * x * z.model;
}

Rows LinearRows(const Table& table, const LinearAttentionOp& op, std::string_view kernel) {
  return Select(table, kernel, op.phase, op.d_model, op.d_conv, op.num_k_heads, op.head_k_dim,
                op.num_v_heads, op.head_v_dim);
}

// A measured tree with the least time to fall back to.
class StateTimer {
 public:
  StateTimer(const Table* table, Rows rows, std::span<const std::size_t> axes, StateSol sol)
      : sol_(std::move(sol)) {
    if (table != nullptr) {
      grid_ = Grid::FromRows(*table, rows, axes);
    }
    grid_sol_ = [inner = sol_](const Coordinates& at) {
      return inner(ToDouble(at[0]), ToDouble(std::max<std::uint64_t>(at[1], 1)));
    };
  }

  double At(std::uint64_t batch, std::uint64_t tokens) const {
    const auto measured = grid_.At({batch, grid_.axes() > 1 ? tokens : 0}, grid_sol_);
    return measured ? *measured : sol_(ToDouble(batch), ToDouble(tokens));
  }

 private:
  Grid grid_;
  StateSol sol_;
  perfdb::GridSol grid_sol_;
};

// Kernels of NVIDIA's sm 100 generation that keep the state in bfloat16.
bool OnFlashLane(const LinearAttentionOp& op, const PerfDatabase& db) {
  const std::uint64_t sm = db.system().sm_version;
  return db.backend() == "sglang" && sm >= 100 && sm < 110 && op.mamba_ssm_dtype == "bfloat16" &&
         op.phase == "generation";
}

// Other names under which a kernel may have been measured.
std::vector<std::string_view> GdnAliases(const LinearAttentionOp& op, const PerfDatabase& db) {
  const bool fixed_version = db.version() == "0.24.0" || db.version() == "0.27.1";
  if (db.backend() == "vllm" && fixed_version && op.phase == "context" &&
      op.kernel_source == "chunk_gated_delta_rule") {
    return {"chunk_gated_delta_rule_flashinfer", "chunk_gated_delta_rule_triton",
            "chunk_gated_delta_rule_cutedsl"};
  }
  if (OnFlashLane(op, db) && op.kernel_source == "fused_sigmoid_gating_delta_rule_update") {
    return {"flashinfer_gated_delta_rule_decode"};
  }
  return {};
}

Rows GdnRows(const LinearAttentionOp& op, const PerfDatabase& db, const Table& table) {
  const bool conv =
      op.kernel_source == "causal_conv1d_fn" || op.kernel_source == "causal_conv1d_update";
  const bool flash = OnFlashLane(op, db);
  if ((!conv && op.mamba_ssm_dtype != "float32" && !flash) ||
      (op.kernel_source == "flashinfer_gated_delta_rule_decode" && !flash)) {
    return {};
  }
  const std::vector<std::string_view> aliases = GdnAliases(op, db);
  Rows found;
  int count = 0;
  for (const std::string_view alias : aliases) {
    const Rows rows = LinearRows(table, op, alias);
    if (!rows.empty()) {
      found = rows;
      ++count;
    }
  }
  if (count == 1) {
    return found;
  }
  const bool no_substitute = flash && !aliases.empty();
  return count > 1 || no_substitute ? Rows{} : LinearRows(table, op, op.kernel_source);
}

OpTimer CompileGdn(const LinearAttentionOp& op, PerfDatabase& db) {
  const double element =
      op.mamba_ssm_dtype == "bfloat16" || op.mamba_ssm_dtype == "float16" ? 2.0 : 4.0;
  const StateSol sol = [z = SizesOf(op), kernel = op.kernel_source, element,
                        mem_bw = db.system().mem_bw](double b, double s) {
    return GdnBytes(z, kernel, element, b, s) / mem_bw * 1000.0;
  };
  const Table* const table = db.Find("gdn");
  const bool context = op.phase == "context";
  StateTimer timer(table, table == nullptr ? Rows{} : GdnRows(op, db, *table),
                   std::span(kLinearAxes).first(context ? 2 : 1), sol);
  return [timer = std::move(timer), context](const PassQuery& query) -> Timed {
    return timer.At(query.batch, context ? query.tokens : 1);
  };
}

// True when the table holds any row of a kernel in a phase.
bool HasKernel(const Table& table, std::string_view kernel, std::string_view phase) {
  return !Select(table, kernel, phase).empty();
}

// The kernel that stands for the asked one in this table; empty when another operation covers it.
std::string KdaKernel(const LinearAttentionOp& op, const Table& table) {
  const std::string& kernel = op.kernel_source;
  if (op.phase == "verify" &&
      (kernel == "causal_conv1d_update" || kernel == "fused_sigmoid_gating_delta_rule_update")) {
    if (!HasKernel(table, kernel, "verify") &&
        HasKernel(table, "fused_kda_decode_mtp_dspark", "verify")) {
      return kernel == "causal_conv1d_update" ? "" : "fused_kda_decode_mtp_dspark";
    }
  }
  if (op.phase == "generation" &&
      (kernel == "causal_conv1d_update" || kernel == "fused_recurrent_kda_packed_decode")) {
    if (LinearRows(table, op, kernel).empty() &&
        !LinearRows(table, op, "kda_fused_decode").empty()) {
      return kernel == "causal_conv1d_update" ? "" : "kda_fused_decode";
    }
  }
  return kernel;
}

// The exact key, else the nearest number of value heads of the same kernel, phase and width.
Rows KdaRows(const LinearAttentionOp& op, const Table& table, std::string_view kernel) {
  const Rows exact = LinearRows(table, op, kernel);
  if (!exact.empty()) {
    return exact;
  }
  constexpr std::size_t kFirst = 3, kHeads = 6, kLast = 7;
  Rows best;
  std::uint64_t best_distance = 0;
  for (Rows rest = Select(table, kernel, op.phase, op.d_model); !rest.empty();) {
    Rows group = rest;
    for (std::size_t column = kFirst; column <= kLast; ++column) {
      group = table.FirstGroup(group, column);
    }
    if (group.empty()) {
      break;
    }
    const std::uint64_t heads = table.column(kHeads).At(group.begin);
    const std::uint64_t distance =
        heads > op.num_v_heads ? heads - op.num_v_heads : op.num_v_heads - heads;
    if (best.empty() || distance < best_distance) {
      best = group;
      best_distance = distance;
    }
    rest.begin = group.end;
  }
  return best;
}

OpTimer CompileKda(const LinearAttentionOp& op, PerfDatabase& db) {
  const Table* const table = db.Find("kda");
  const std::string kernel = table == nullptr ? op.kernel_source : KdaKernel(op, *table);
  if (kernel.empty()) {
    return [](const PassQuery&) -> Timed { return 0.0; };
  }
  const StateSol sol = [z = SizesOf(op), kernel, mem_bw = db.system().mem_bw](double b, double s) {
    return KdaBytes(z, kernel, b, s) / mem_bw * 1000.0;
  };
  const std::size_t axes = op.phase == "generation" ? 1 : 2;
  StateTimer timer(table, table == nullptr ? Rows{} : KdaRows(op, *table, kernel),
                   std::span(kLinearAxes).first(axes), sol);
  return [timer = std::move(timer), phase = op.phase,
          drafts = op.draft_tokens](const PassQuery& query) -> Timed {
    if (phase == "verify" && drafts > 0) {
      const double share = std::nearbyint(ToDouble(query.batch) / ToDouble(drafts));
      return timer.At(std::max<std::uint64_t>(static_cast<std::uint64_t>(share), 1), drafts);
    }
    return timer.At(query.batch, phase == "context" ? query.tokens : 1);
  };
}

// The exact key, else the first one of the same kernel and width. Decode is never measured.
Rows Mamba2Rows(const Mamba2Op& op, const Table& table) {
  if (op.phase != "context") {
    return {};
  }
  const Rows exact = Select(table, op.kernel_source, op.phase, op.d_model, op.d_state, op.d_conv,
                            op.nheads, op.head_dim, op.n_groups, op.chunk_size);
  if (!exact.empty()) {
    return exact;
  }
  Rows first = Select(table, op.kernel_source, op.phase, op.d_model);
  for (std::size_t column = 3; column <= 8; ++column) {
    first = table.FirstGroup(first, column);
  }
  return first;
}

}  // namespace

OpTimer Compile(const LinearAttentionOp& op, PerfDatabase& db) {
  return op.kda ? CompileKda(op, db) : CompileGdn(op, db);
}

OpTimer Compile(const Mamba2Op& op, PerfDatabase& db) {
  const double inner = ToDouble(op.nheads * op.head_dim);
  const double groups = ToDouble(2 * op.n_groups * op.d_state);
  const double conv = ToDouble(op.d_conv);
  const double heads = ToDouble(op.nheads);
  const bool is_conv = op.kernel_source.starts_with("causal_conv1d");
  const StateSol sol = [=, mem_bw = db.system().mem_bw](double b, double s) {
    const double x = b * s;
    const double bytes =
        is_conv ? x * (inner + groups) * (conv + 1.0) * 2.0 + x * (inner + groups) * 2.0
                : x * (inner + groups + heads) * 2.0 + x * inner * 2.0;
    return bytes / mem_bw * 1000.0;
  };
  const Table* const table = db.Find("mamba2");
  StateTimer timer(table, table == nullptr ? Rows{} : Mamba2Rows(op, *table), kMambaAxes, sol);
  const bool context = op.phase == "context";
  return [timer = std::move(timer), context](const PassQuery& query) -> Timed {
    return timer.At(query.batch, context ? query.tokens : 1);
  };
}

}  // namespace dynosim::timing
