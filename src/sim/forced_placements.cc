// SPDX-License-Identifier: Apache-2.0
#include "sim/forced_placements.h"

#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/result.h"
#include "scenario/placements.h"
#include "sim/outcome.h"
#include "workload/agentic_graph.h"
#include "workload/agentic_source.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::sim {

namespace {

constexpr const char* kFlag = "--placements";

std::string Describe(const workload::Request& request) {
  return fmt::format("the request that arrives at {} ms with {} prompt and {} output tokens",
                     request.arrival_ms, request.prompt_tokens, request.output_tokens);
}

}  // namespace

ForcedPlacements::ForcedPlacements(const scenario::Placements& placements,
                                   const workload::RequestSource& source)
    : placements_(placements), source_(source), row_of_(source.RequestCount(), workload::kNone) {
  for (std::uint32_t i = 0; i < placements_.rows.size(); ++i) {
    const scenario::PlacedRow& row = placements_.rows[i];
    if (row.request_id) {
      by_id_[*row.request_id].numbers.push_back(i);
    } else if (row.session && row.turn) {
      by_turn_[TurnKey{*row.session, *row.turn}].numbers.push_back(i);
    } else {
      by_shape_[ShapeKey{row.arrival_ms, row.prompt_tokens, row.output_tokens}].numbers.push_back(
          i);
    }
  }
}

ForcedPlacements::Rows* ForcedPlacements::Find(const workload::Request& request) {
  if (const workload::AgenticSource* agentic = source_.Agentic()) {
    if (Rows* rows = by_id_.Find(agentic->graph().nodes[request.id].id)) {
      return rows;
    }
  }
  if (request.session != workload::kNone && request.turn != workload::kNone) {
    Rows* rows = by_turn_.Find(TurnKey{source_.SessionName(request.session), request.turn});
    if (rows != nullptr) {
      return rows;
    }
  }
  return by_shape_.Find(ShapeKey{request.arrival_ms, request.prompt_tokens, request.output_tokens});
}

Result<std::uint32_t> ForcedPlacements::TargetOf(const workload::Request& request, Pool pool,
                                                 std::uint32_t targets) {
  std::uint32_t& number = row_of_[request.id];
  if (number == workload::kNone) {
    Rows* rows = Find(request);
    if (rows == nullptr || rows->next == rows->numbers.size()) {
      return FailedError(kFlag, "no row of the report matches " + Describe(request));
    }
    number = rows->numbers[rows->next++];
    ++claimed_;
  }
  const scenario::PlacedRow& row = placements_.rows[number];
  const std::optional<std::uint32_t> target = pool == Pool::kPrefill  ? row.prefill
                                              : pool == Pool::kDecode ? row.decode
                                                                      : row.aggregated;
  if (!target) {
    return FailedError(kFlag, "the row of " + Describe(request) + " has no " +
                                  (pool == Pool::kPrefill  ? "prefill"
                                   : pool == Pool::kDecode ? "decode"
                                                           : "aggregated") +
                                  " placement");
  }
  if (*target >= targets) {
    return FailedError(kFlag, fmt::format("the row of {} names target {}, but the pool has {}",
                                          Describe(request), *target, targets));
  }
  return *target;
}

}  // namespace dynosim::sim
