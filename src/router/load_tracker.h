// SPDX-License-Identifier: Apache-2.0
// LoadTracker: what the placed requests of a pool mean for its targets: prompt tokens still to be
// computed, blocks in use, and requests (chapter 70, section 4). State changes only by placements
// and by what the run reports about placed requests.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "base/time.h"
#include "kv/events.h"
#include "router/prefill_work.h"
#include "router/presence_index.h"
#include "workload/request.h"

namespace dynosim::router {

struct TrackingRules {
  bool blocks = true;        // count blocks at all
  bool share_blocks = true;  // equal prefix blocks of several requests count once
  bool prefill_tokens = true;
  bool predicted = false;  // prompt tokens count down as their time passes
};

// What a placed request added to its target.
struct TrackedRequest {
  std::uint32_t target = workload::kNone;  // kNone: not placed
  std::uint64_t prefill_tokens = 0;        // still counted
  PrefillWork::Ticket ticket = 0;          // of those, when they count down
  std::uint64_t full_blocks = 0;
  std::vector<workload::BlockExtent> extents;  // names of its blocks, when they are shared
};

class LoadTracker {
 public:
  LoadTracker(std::uint32_t targets, const TrackingRules& rules);

  // `duration_ns`: how long the prompt tokens take, when that is predicted.
  void Add(TrackedRequest& request, std::uint32_t target, std::uint64_t prefill_tokens,
           double now_ms = 0.0, std::optional<std::uint64_t> duration_ns = std::nullopt);
  void DropPrefill(TrackedRequest& request, double now_ms = 0.0);
  void Remove(TrackedRequest& request, double now_ms = 0.0);

  std::uint64_t prefill_tokens(std::uint32_t target, double now_ms = 0.0) const {
    return rules_.predicted ? work_[target].Tokens(NanosFromMillis(now_ms))
                            : prefill_tokens_[target];
  }
  std::uint64_t blocks(std::uint32_t target) const { return blocks_[target]; }
  std::uint64_t requests(std::uint32_t target) const { return requests_[target]; }
  std::uint64_t LeastPrefillTokens(double now_ms = 0.0) const;

  // Leading blocks of the request that a target tracks already, for targets with at least one.
  void MatchTracked(const TrackedRequest& request, std::vector<PrefixMatch>& out);

  const TrackingRules& rules() const { return rules_; }

 private:
  using Shared = std::pair<kv::BlockName, std::uint32_t>;  // block, target

  TrackingRules rules_;
  std::vector<std::uint64_t> prefill_tokens_, blocks_, requests_;  // by target
  std::vector<PrefillWork> work_;  // by target, when prompt tokens count down
  PresenceIndex tracked_;
  FlatMap<Shared, std::uint32_t> further_;  // requests beyond the first that use a tracked block
};

}  // namespace dynosim::router
