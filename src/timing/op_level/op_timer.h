// SPDX-License-Identifier: Apache-2.0
// OpTimer: what one operation costs in a pass, resolved against the measured data once. Compiling
// finds tables, keys and grids; asking only interpolates. Data that is missing, and arithmetic that
// a system lacks, show when the timer is asked, because a module with a substitute may lack data.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <string>

#include "perfdb/table.h"
#include "timing/op_level/database.h"
#include "timing/op_level/operation.h"

namespace dynosim::timing {

// One question: `batch` sequences; in the context phase each adds `tokens` behind `prefix` computed
// ones, in the generation phase each adds one and attends to `tokens`.
struct PassQuery {
  bool context = true;
  std::uint64_t batch = 1;
  std::uint64_t tokens = 1;
  std::uint64_t prefix = 0;

  // Tokens that flow through the layers.
  std::uint64_t Flow() const { return context ? batch * tokens : batch; }
};

struct Failure {
  // Only missing data lets a substitute step in.
  enum class Kind { kMissingData, kMissingFlops } kind = Kind::kMissingData;
  std::string text;
};
using Timed = std::expected<double, Failure>;
using OpTimer = std::function<Timed(const PassQuery&)>;

// Milliseconds of one run of the operation, not yet scaled.
OpTimer Compile(const EmbeddingOp& op, PerfDatabase& db);
OpTimer Compile(const ElementwiseOp& op, PerfDatabase& db);
OpTimer Compile(const GemmOp& op, PerfDatabase& db, bool last_token_only);
OpTimer Compile(const ContextAttentionOp& op, PerfDatabase& db);
OpTimer Compile(const GenerationAttentionOp& op, PerfDatabase& db);
OpTimer Compile(const AllReduceOp& op, PerfDatabase& db);
OpTimer Compile(const P2POp& op, PerfDatabase& db);
OpTimer Compile(const MoeOp& op, PerfDatabase& db);
OpTimer Compile(const MoeDispatchOp& op, PerfDatabase& db);
OpTimer Compile(const MlaModuleOp& op, PerfDatabase& db);
OpTimer Compile(const ContextMlaOp& op, PerfDatabase& db);
OpTimer Compile(const GenerationMlaOp& op, PerfDatabase& db);
OpTimer Compile(const MlaBmmOp& op, PerfDatabase& db);
OpTimer Compile(const LinearAttentionOp& op, PerfDatabase& db);
OpTimer Compile(const Mamba2Op& op, PerfDatabase& db);
OpTimer Compile(const DsaOp& op, PerfDatabase& db);
OpTimer Compile(const MsaOp& op, PerfDatabase& db);
OpTimer Compile(const Dsv4Op& op, PerfDatabase& db);
OpTimer Compile(const MhcOp& op, PerfDatabase& db);

// Milliseconds of an operation in a pass, scaled; overlaps and substitutes included.
OpTimer CompileOperation(const Operation& op, PerfDatabase& db);
// True when the cost depends on the length of the context in the generation phase.
bool DependsOnContext(const Operation& op);

// Helpers of the kinds.
std::unexpected<Failure> MissingData(std::string text);
std::unexpected<Failure> MissingFlops(const PerfDatabase& db, std::string_view mode);
// A timer that always fails.
OpTimer Always(std::unexpected<Failure> failure);

}  // namespace dynosim::timing
