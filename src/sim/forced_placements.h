// SPDX-License-Identifier: Apache-2.0
// ForcedPlacements: the decisions of an earlier report, found again for the requests of this run
// (chapter 05, rule 13). A row belongs to a request by request_id, or session and turn, where it
// has them, else by arrival time, input length and requested output length, in row order.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "base/result.h"
#include "scenario/placements.h"
#include "sim/outcome.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::sim {

class ForcedPlacements {
 public:
  // The placements outlive the object.
  ForcedPlacements(const scenario::Placements& placements, const workload::RequestSource& source);

  // Number of the target of the request's decision in a pool of `targets`.
  Result<std::uint32_t> TargetOf(const workload::Request& request, Pool pool,
                                 std::uint32_t targets);

  // Rows that no request has claimed.
  std::uint64_t unclaimed() const { return placements_.rows.size() - claimed_; }

 private:
  using TurnKey = std::pair<std::string, std::uint32_t>;
  using ShapeKey = std::tuple<double, std::uint64_t, std::uint64_t>;
  struct Rows {
    std::vector<std::uint32_t> numbers;  // in row order
    std::size_t next = 0;
  };

  Rows* Find(const workload::Request& request);

  const scenario::Placements& placements_;
  const workload::RequestSource& source_;
  FlatMap<std::string, Rows> by_id_;
  FlatMap<TurnKey, Rows> by_turn_;
  FlatMap<ShapeKey, Rows> by_shape_;
  std::vector<std::uint32_t> row_of_;  // by request
  std::uint64_t claimed_ = 0;
};

}  // namespace dynosim::sim
