// SPDX-License-Identifier: Apache-2.0
#include "router/load_tracker.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "kv/events.h"
#include "router/presence_index.h"
#include "workload/request.h"

namespace dynosim::router {

LoadTracker::LoadTracker(std::uint32_t targets, const TrackingRules& rules)
    : rules_(rules),
      prefill_tokens_(targets, 0),
      blocks_(targets, 0),
      requests_(targets, 0),
      work_(rules.predicted ? targets : 0),
      tracked_(targets) {}

void LoadTracker::Add(TrackedRequest& request, std::uint32_t target, std::uint64_t prefill_tokens,
                      double now_ms, std::optional<std::uint64_t> duration_ns) {
  request.target = target;
  ++requests_[target];
  if (rules_.prefill_tokens) {
    request.prefill_tokens = prefill_tokens;
    prefill_tokens_[target] += prefill_tokens;
    if (rules_.predicted && prefill_tokens > 0) {
      request.ticket = work_[target].Add(prefill_tokens, duration_ns, NanosFromMillis(now_ms));
    }
  }
  if (!rules_.blocks) {
    return;
  }
  if (!rules_.share_blocks) {
    blocks_[target] += request.full_blocks;
    return;
  }
  blocks_[target] +=
      tracked_.AddSequence(target, request.extents, request.full_blocks,
                           [&](kv::BlockName name) { ++further_[Shared{name, target}]; });
}

void LoadTracker::DropPrefill(TrackedRequest& request, double now_ms) {
  if (rules_.predicted && request.prefill_tokens > 0) {
    work_[request.target].Drop(request.ticket, NanosFromMillis(now_ms));
  }
  prefill_tokens_[request.target] -= request.prefill_tokens;
  request.prefill_tokens = 0;
}

void LoadTracker::Remove(TrackedRequest& request, double now_ms) {
  const std::uint32_t target = request.target;
  DropPrefill(request, now_ms);
  --requests_[target];
  request.target = workload::kNone;
  if (!rules_.blocks) {
    return;
  }
  if (!rules_.share_blocks) {
    blocks_[target] -= request.full_blocks;
    return;
  }
  // A name stands for its whole prefix: behind the first block of its own, all are.
  bool shared = !further_.empty();
  const auto still_used = [&](kv::BlockName name) {
    std::uint32_t* further = shared ? further_.Find(Shared{name, target}) : nullptr;
    if (further == nullptr) {
      shared = false;
      return false;
    }
    if (--*further == 0) {
      further_.Erase(Shared{name, target});
    }
    return true;
  };
  blocks_[target] -=
      tracked_.RemoveSequence(target, request.extents, request.full_blocks, still_used);
}

std::uint64_t LoadTracker::LeastPrefillTokens(double now_ms) const {
  if (!rules_.predicted) {
    return *std::ranges::min_element(prefill_tokens_);
  }
  std::uint64_t least = prefill_tokens(0, now_ms);
  for (std::uint32_t target = 1; target < work_.size(); ++target) {
    least = std::min(least, prefill_tokens(target, now_ms));
  }
  return least;
}

void LoadTracker::MatchTracked(const TrackedRequest& request, std::vector<PrefixMatch>& out) {
  if (rules_.blocks && rules_.share_blocks) {
    tracked_.Match(request.extents, request.full_blocks, out);
  } else {
    out.clear();
  }
}

}  // namespace dynosim::router
