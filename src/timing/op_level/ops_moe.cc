// SPDX-License-Identifier: Apache-2.0
// Mixture of experts: the expert kernels, measured per exact shape over the number of tokens, and
// the exchange of tokens before and after them.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "perfdb/grid.h"
#include "perfdb/system_spec.h"
#include "perfdb/table.h"
#include "timing/op_level/collectives.h"
#include "timing/op_level/database.h"
#include "timing/op_level/modes.h"
#include "timing/op_level/op_timer.h"
#include "timing/op_level/operation.h"

namespace dynosim::timing {
namespace {

using perfdb::Curve;
using perfdb::Rows;
using perfdb::Table;

constexpr std::size_t kDistribution = 2;
constexpr std::size_t kTokens = 9;
// Below this many tokens a kernel made for latency may be used.
constexpr std::uint64_t kLowLatencyTokens = 128;

Curve FindCurve(PerfDatabase& db, const MoeOp& op, bool low_latency) {
  const Table* const table = db.Find("moe");
  if (table == nullptr) {
    return {};
  }
  const Rows of_mode = Select(*table, std::uint64_t{low_latency ? 1U : 0U}, op.quant_mode);
  // A mode that was measured with the wanted distribution of tokens is only read there.
  Rows rows = table->Narrow(of_mode, kDistribution, op.workload_distribution);
  if (rows.empty()) {
    rows = table->Narrow(of_mode, kDistribution, "uniform");
  }
  std::size_t column = kDistribution + 1;
  for (const std::uint64_t value : {op.topk, op.num_experts, op.hidden_size, op.inter_size,
                                    op.layout.moe_tp_size, op.layout.moe_ep_size}) {
    rows = table->Narrow(rows, column++, value);
  }
  return Curve::FromRows(*table, rows, kTokens);
}

// Least time of the experts for t tokens; whole numbers, divided in this order.
perfdb::CurveSol ExpertSol(const MoeOp& op, double flops, double mem_bw) {
  const std::uint64_t projections = op.is_gated ? 3 : 2;
  const std::uint64_t ep = std::max<std::uint64_t>(op.layout.moe_ep_size, 1);
  const std::uint64_t tp = std::max<std::uint64_t>(op.layout.moe_tp_size, 1);
  const std::uint64_t h = op.hidden_size;
  const std::uint64_t inter = op.inter_size;
  const double bytes = BytesOf(op.quant_mode);
  return [=, topk = op.topk, experts = op.num_experts](double t) {
    const std::uint64_t total = static_cast<std::uint64_t>(std::floor(t + 0.5)) * topk;
    const std::uint64_t ops = total * h * inter * projections * 2 / ep / tp;
    const std::uint64_t moved = total / ep * h * 2 + total / ep * inter * projections / tp +
                                h * inter * projections / tp * std::min(experts / ep, total / ep);
    return std::max(ToDouble(ops) / flops * 1000.0, ToDouble(moved) * bytes / mem_bw * 1000.0);
  };
}

// What one exchange costs: up to two collectives, each with its elements per token.
struct Exchange {
  struct Step {
    Collective collective;
    double elements = 0.0;  // per token of the rank
  };
  std::vector<Step> steps;

  Timed At(std::uint64_t tokens) const {
    double total = 0.0;
    for (const Step& step : steps) {
      const Timed time = step.collective.At(ToDouble(tokens) * step.elements);
      if (!time) {
        return time;
      }
      total += *time;
    }
    return total;
  }
};

// Elements that TensorRT-LLM on sm 100 gathers per value of the hidden state: quantized values, and
// their scales.
double GatheredShare(std::string_view mode) {
  if (mode == "nvfp4") {
    return 0.25 + 0.25 / 8.0;
  }
  return mode == "fp8" || mode == "fp8_block" ? 0.5 : 1.0;
}

OpTimer CompileAllToAll(const MoeDispatchOp& op, PerfDatabase& db) {
  const Table* const table = db.Find("trtllm_alltoall");
  const std::string mode = op.moe_quant == "fp8_block" ? "fp8" : op.moe_quant;
  const std::uint64_t ranks = op.layout.moe_ep_size;
  Curve curve;
  if (table != nullptr) {
    curve = Curve::FromRows(
        *table,
        Select(*table, "NVLinkOneSided", op.pre_dispatch ? "alltoall_dispatch" : "alltoall_combine",
               mode, ranks < 4 ? 1 : ranks / 4, op.hidden_size, op.topk, op.num_experts, ranks),
        8);
  }
  return [curve = std::move(curve), ranks, mode](const PassQuery& query) -> Timed {
    const auto time = curve.At(ToDouble(query.Flow()), [](double x) { return x; });
    if (!time) {
      return MissingData(
          fmt::format("all-to-all data missing for {} ranks in mode {}", ranks, mode));
    }
    return *time;
  };
}

class DispatchPlan {
 public:
  DispatchPlan(const MoeDispatchOp& op, PerfDatabase& db)
      : op_(op),
        db_(db),
        ranks_(std::max<std::uint64_t>(op.layout.moe_tp_size * op.layout.moe_ep_size, 1)),
        replicas_(std::max<std::uint64_t>(op.layout.attention_dp_size, 1)),
        attention_ranks_(std::max<std::uint64_t>(ranks_ / replicas_, 1)),
        hidden_(ToDouble(op.hidden_size)) {}

  Exchange Make() {
    if (op_.backend == "vllm") {
      Vllm();
    } else if (op_.backend == "sglang") {
      Sglang();
    } else {
      Trtllm();
    }
    return std::move(out_);
  }

 private:
  void AllReduce() {
    out_.steps.push_back({.collective = Collective::AllReduce(db_, ranks_), .elements = hidden_});
  }
  void Library(std::string_view operation, std::uint64_t ranks, double elements) {
    out_.steps.push_back(
        {.collective = Collective::Library(db_, operation, ranks), .elements = elements});
  }
  // Every replica's tokens go to every rank, or the sums come back.
  void Replicas(double share = 1.0) {
    Library(op_.pre_dispatch ? "all_gather" : "reduce_scatter", ranks_,
            ToDouble(replicas_) * (hidden_ * (op_.pre_dispatch ? share : 1.0)));
  }

  void Vllm() {
    if (attention_ranks_ > 1 && !(op_.pre_dispatch && op_.attn_ar_modeled)) {
      AllReduce();
    }
    if (replicas_ > 1) {
      Replicas();
    }
  }
  void Sglang() {
    if (attention_ranks_ > 1 && replicas_ > 1) {
      if (op_.pre_dispatch) {
        Library("reduce_scatter", attention_ranks_, hidden_);
        Replicas();
      } else {
        Replicas();
        Library("all_gather", attention_ranks_, hidden_);
      }
    } else if (attention_ranks_ > 1) {
      AllReduce();
    } else if (replicas_ > 1) {
      Replicas();
    }
  }
  void Trtllm() {
    constexpr std::uint64_t kQuantizedGather = 100;
    if (db_.system().sm_version == kQuantizedGather) {
      if (replicas_ > 1) {
        Replicas(GatheredShare(op_.moe_quant));
      } else if (attention_ranks_ > 1) {
        AllReduce();
      }
    } else if (attention_ranks_ > 1) {
      AllReduce();
    } else if (replicas_ > 1) {
      Replicas();
    }
  }

  const MoeDispatchOp& op_;
  PerfDatabase& db_;
  std::uint64_t ranks_, replicas_, attention_ranks_;
  double hidden_;
  Exchange out_;
};

bool UsesAllToAll(const MoeDispatchOp& op, const perfdb::SystemSpec& system) {
  return op.backend == "trtllm" && system.sm_version == 100 && op.layout.attention_dp_size > 1 &&
         op.layout.moe_tp_size == 1 && system.gpus_per_node >= 72;
}

}  // namespace

OpTimer Compile(const MoeOp& op, PerfDatabase& db) {
  const auto flops = db.Flops(op.quant_mode);
  if (!flops) {
    return Always(MissingFlops(db, op.quant_mode));
  }
  const std::string missing = fmt::format(
      "MoE data missing for mode {}, distribution {}, top {} of {} experts, hidden {}, inner {}, "
      "moe_tp {}, moe_ep {}",
      op.quant_mode, op.workload_distribution, op.topk, op.num_experts, op.hidden_size,
      op.inter_size, op.layout.moe_tp_size, op.layout.moe_ep_size);
  Curve usual = FindCurve(db, op, false);
  Curve low_latency;
  if (op.quant_mode == "nvfp4" && op.is_gated) {
    low_latency = FindCurve(db, op, true);
  }
  const std::uint64_t replicas = std::max<std::uint64_t>(op.layout.attention_dp_size, 1);
  return [=, usual = std::move(usual), low_latency = std::move(low_latency),
          sol = ExpertSol(op, *flops, db.system().mem_bw)](const PassQuery& query) -> Timed {
    const std::uint64_t tokens = query.Flow() * replicas;
    const bool low = tokens <= kLowLatencyTokens && !low_latency.empty();
    const Curve& curve = low ? low_latency : usual;
    if (curve.empty() || (curve.size() == 1 && tokens < curve.FirstKey())) {
      return MissingData(missing);
    }
    const auto time = curve.At(ToDouble(tokens), sol);
    if (!time) {
      return MissingData(missing);
    }
    return *time;
  };
}

OpTimer Compile(const MoeDispatchOp& op, PerfDatabase& db) {
  if (UsesAllToAll(op, db.system())) {
    return CompileAllToAll(op, db);
  }
  return [exchange = DispatchPlan(op, db).Make()](const PassQuery& query) {
    return exchange.At(query.Flow());
  };
}

}  // namespace dynosim::timing
