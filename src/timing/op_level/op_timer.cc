// SPDX-License-Identifier: Apache-2.0
// Composition: scaling, overlap, substitutes.
#include "timing/op_level/op_timer.h"

#include <algorithm>
#include <concepts>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "perfdb/system_spec.h"
#include "timing/op_level/database.h"
#include "timing/op_level/modes.h"
#include "timing/op_level/operation.h"

namespace dynosim::timing {
namespace {

std::vector<OpTimer> CompileAll(const std::vector<Operation>& operations, PerfDatabase& db) {
  std::vector<OpTimer> timers;
  for (const Operation& operation : operations) {
    timers.push_back(CompileOperation(operation, db));
  }
  return timers;
}

Timed Sum(const std::vector<OpTimer>& timers, const PassQuery& query) {
  double total = 0.0;
  for (const OpTimer& timer : timers) {
    const Timed part = timer(query);
    if (!part) {
      return part;
    }
    total += *part;
  }
  return total;
}

}  // namespace

std::unexpected<Failure> MissingData(std::string text) {
  return std::unexpected(Failure{.kind = Failure::Kind::kMissingData, .text = std::move(text)});
}

std::unexpected<Failure> MissingFlops(const PerfDatabase& db, std::string_view mode) {
  const Mode* const found = FindMode(mode);
  return std::unexpected(Failure{
      .kind = Failure::Kind::kMissingFlops,
      .text = found == nullptr
                  ? fmt::format("the mode '{}' is not known", mode)
                  : fmt::format("missing system flops: the mode '{}' needs '{}', which {} lacks",
                                mode, perfdb::FlopsField(found->arithmetic), db.system().name)});
}

OpTimer Always(std::unexpected<Failure> failure) {
  return [failure = std::move(failure)](const PassQuery&) -> Timed { return failure; };
}

OpTimer CompileOperation(const Operation& op, PerfDatabase& db) {
  if (const auto* const overlap = std::get_if<OverlapOp>(&op.kind)) {
    return [a = CompileAll(overlap->group_a, db),
            b = CompileAll(overlap->group_b, db)](const PassQuery& query) -> Timed {
      const Timed first = Sum(a, query);
      if (!first) {
        return first;
      }
      const Timed second = Sum(b, query);
      return second ? std::max(*first, *second) : second;
    };
  }
  if (const auto* const fallback = std::get_if<FallbackOp>(&op.kind)) {
    return [primary = CompileOperation(fallback->primary.front(), db),
            list = CompileAll(fallback->list, db)](const PassQuery& query) -> Timed {
      Timed first = primary(query);
      return first || first.error().kind != Failure::Kind::kMissingData ? first : Sum(list, query);
    };
  }
  OpTimer timer = std::visit(
      [&](const auto& kind) -> OpTimer {
        using Kind = std::remove_cvref_t<decltype(kind)>;
        if constexpr (std::same_as<Kind, GemmOp>) {
          return Compile(kind, db, op.name.find("logits_gemm") != std::string::npos);
        } else if constexpr (std::same_as<Kind, UnmeasuredOp>) {
          return Always(MissingData(fmt::format("no measured data for {}", op.name)));
        } else if constexpr (std::same_as<Kind, OverlapOp> || std::same_as<Kind, FallbackOp>) {
          return {};
        } else {
          return Compile(kind, db);
        }
      },
      op.kind);
  return [timer = std::move(timer), scale = op.scale_factor](const PassQuery& query) -> Timed {
    Timed time = timer(query);
    if (time) {
      *time = std::max(*time, 0.0) * scale;
    }
    return time;
  };
}

bool DependsOnContext(const Operation& op) {
  return std::visit(
      [](const auto& kind) {
        using Kind = std::remove_cvref_t<decltype(kind)>;
        const auto any = [](const std::vector<Operation>& group) {
          return std::any_of(group.begin(), group.end(), DependsOnContext);
        };
        if constexpr (std::same_as<Kind, OverlapOp>) {
          return any(kind.group_a) || any(kind.group_b);
        } else if constexpr (std::same_as<Kind, FallbackOp>) {
          return any(kind.primary) || any(kind.list);
        } else {
          return std::same_as<Kind, GenerationAttentionOp> || std::same_as<Kind, MlaModuleOp> ||
                 std::same_as<Kind, GenerationMlaOp> || std::same_as<Kind, DsaOp> ||
                 std::same_as<Kind, MsaOp> || std::same_as<Kind, Dsv4Op>;
        }
      },
      op.kind);
}

}  // namespace dynosim::timing
