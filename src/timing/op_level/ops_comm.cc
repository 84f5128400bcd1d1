// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "perfdb/grid.h"
#include "perfdb/system_spec.h"
#include "perfdb/table.h"
#include "timing/op_level/collectives.h"
#include "timing/op_level/database.h"
#include "timing/op_level/op_timer.h"
#include "timing/op_level/operation.h"

namespace dynosim::timing {
namespace {

using perfdb::Rows;
using perfdb::SystemSpec;
using perfdb::Table;

// Group sizes that a column holds within some rows.
std::vector<std::uint64_t> SizesIn(const Table& table, Rows rows, std::size_t column) {
  std::vector<std::uint64_t> sizes;
  while (!rows.empty()) {
    const Rows group = table.FirstGroup(rows, column);
    if (group.empty()) {
      break;
    }
    sizes.push_back(table.column(column).At(rows.begin));
    rows.begin = group.end;
  }
  return sizes;
}

// The measured group that stands for a group of `gpus`.
std::uint64_t MeasuredGroup(const SystemSpec& system, const std::vector<std::uint64_t>& measured,
                            std::uint64_t gpus) {
  if (measured.empty()) {
    return gpus;
  }
  if (gpus <= system.gpus_per_node) {
    return std::min(gpus, *std::max_element(measured.begin(), measured.end()));
  }
  std::uint64_t best = 0;
  for (const std::uint64_t size : measured) {
    best = size <= gpus ? std::max(best, size) : best;
  }
  return best == 0 ? system.gpus_per_node : best;
}

// Traffic per rank grows as (g - 1) / g, bandwidth changes with the reach of the group.
double ScaleTo(const SystemSpec& system, std::uint64_t gpus, std::uint64_t measured) {
  if (gpus <= measured) {
    return 1.0;
  }
  const double g = ToDouble(gpus);
  const double e = ToDouble(measured);
  return (g - 1.0) / g * e / std::max(e - 1.0, 1.0) * system.GroupBandwidth(measured) /
         system.GroupBandwidth(gpus);
}

double Identity(double x) { return x; }

}  // namespace

Collective Collective::AllReduce(PerfDatabase& db, std::uint64_t gpus) {
  constexpr std::uint64_t kRackOfOneNode = 72;
  constexpr std::uint64_t kOwnKernelMax = 4;
  if (gpus > kOwnKernelMax && db.system().gpus_per_node == kRackOfOneNode) {
    return Library(db, "all_reduce", gpus);
  }
  Collective out;
  out.alone_ = gpus <= 1;
  out.missing_ = fmt::format("all-reduce data missing for {} GPUs", gpus);
  const Table* const table = out.alone_ ? nullptr : db.Find("custom_allreduce");
  if (table != nullptr) {
    const std::uint64_t measured =
        MeasuredGroup(db.system(), SizesIn(*table, table->All(), 0), gpus);
    out.curve_ = perfdb::Curve::FromRows(*table, Select(*table, measured), 1);
    out.scale_ = ScaleTo(db.system(), gpus, measured);
  }
  return out;
}

Collective Collective::Library(PerfDatabase& db, std::string_view operation, std::uint64_t gpus) {
  Collective out;
  out.alone_ = gpus <= 1;
  out.missing_ = fmt::format("{} data missing for {} GPUs", operation, gpus);
  for (const std::string_view library : {"nccl", "oneccl"}) {
    const Table* const table = out.alone_ ? nullptr : db.Find(library);
    if (table == nullptr || !out.curve_.empty()) {
      continue;
    }
    const Rows rows = Select(*table, "half", operation);
    const std::uint64_t measured = MeasuredGroup(db.system(), SizesIn(*table, rows, 2), gpus);
    out.curve_ = perfdb::Curve::FromRows(*table, table->Narrow(rows, 2, measured), 3);
    out.scale_ = ScaleTo(db.system(), gpus, measured);
  }
  return out;
}

Timed Collective::At(double elements) const {
  if (alone_) {
    return 0.0;
  }
  const auto value = curve_.At(elements, Identity);
  if (!value) {
    return MissingData(missing_);
  }
  return *value * scale_;
}

OpTimer Compile(const AllReduceOp& op, PerfDatabase& db) {
  const double hidden = ToDouble(op.hidden_size);
  return [hidden, group = Collective::AllReduce(db, op.tp_size)](const PassQuery& query) {
    return group.At(ToDouble(query.Flow()) * hidden);
  };
}

OpTimer Compile(const P2POp& op, PerfDatabase& db) {
  const SystemSpec& system = db.system();
  return [=](const PassQuery& query) -> Timed {
    if (op.pp_size <= 1) {
      return 0.0;
    }
    return (ToDouble(query.Flow()) * ToDouble(op.hidden_size) * 2.0 / system.inter_node_bw +
            system.p2p_latency_s) *
           1000.0;
  };
}

}  // namespace dynosim::timing
