// SPDX-License-Identifier: Apache-2.0
#include "router/load_policies.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "router/router.h"

namespace dynosim::router {

Result<void> RoundRobin::Place(const Arrival& arrival, double, std::vector<Decision>& out) {
  out.push_back({.request = arrival.request, .target = arrival.forced.value_or(Next())});
  return {};
}

Target RoundRobin::Next() {
  if (rotation_ == Rotation::kTargets) {
    const std::uint32_t number = next_ % shape_.targets();
    next_ = number + 1;
    return shape_.TargetOf(number);
  }
  const std::uint32_t worker = next_ % shape_.workers;
  next_ = worker + 1;
  const std::uint32_t rank = next_rank_[worker];
  next_rank_[worker] = (rank + 1) % shape_.ranks;
  return {worker, rank};
}

Result<void> RandomChoice::Place(const Arrival& arrival, double, std::vector<Decision>& out) {
  const Target drawn = shape_.TargetOf(random_.NextBelow(shape_.targets()));
  out.push_back({.request = arrival.request, .target = arrival.forced.value_or(drawn)});
  return {};
}

// All targets, or two different ones at random.
void LeastLoaded::PickCandidates() {
  const std::uint32_t targets = shape_.targets();
  if (!options_.two_choices || targets <= 2) {
    candidates_.resize(targets);
    std::iota(candidates_.begin(), candidates_.end(), 0U);
    return;
  }
  const std::uint32_t first = random_.NextBelow(targets);
  const std::uint32_t second = random_.NextBelow(targets - 1);
  candidates_ = {first, second + (second >= first ? 1 : 0)};
}

Result<void> LeastLoaded::Place(const Arrival& arrival, double, std::vector<Decision>& out) {
  PickCandidates();
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint32_t target : candidates_) {
    if (requests_[target] < least) {
      least = requests_[target];
      least_.clear();
    }
    if (requests_[target] == least) {
      least_.push_back(target);
    }
  }
  std::uint32_t target = least_.front();
  if (least_.size() > 1) {
    target = least_[random_.NextBelow(static_cast<std::uint32_t>(least_.size()))];
  }
  Decision decision{.request = arrival.request};
  if (arrival.forced) {
    target = shape_.NumberOf(*arrival.forced);
    // Any target may be among two random ones.
    decision.possible = options_.two_choices || requests_[target] == least;
  }
  decision.target = shape_.TargetOf(target);
  if (options_.capture_candidates) {
    for (const std::uint32_t c : candidates_) {
      decision.candidates.push_back({.target = shape_.TargetOf(c),
                                     .active_requests = requests_[c],
                                     .cost = static_cast<double>(requests_[c])});
    }
  }
  ++requests_[target];
  target_of_[arrival.request.id & shape_.id_mask] = target;
  out.push_back(std::move(decision));
  return {};
}

void LeastLoaded::Terminal(std::uint32_t request, double, std::vector<Decision>&) {
  const std::uint32_t* const target = target_of_.Find(request & shape_.id_mask);
  DYNO_CHECK(target != nullptr);
  --requests_[*target];
  target_of_.Erase(request & shape_.id_mask);
}

}  // namespace dynosim::router
