// SPDX-License-Identifier: Apache-2.0
// Gauges of a rank and forward-pass metrics of one pass (chapter 10, section 9; chapter 20, section
// 14).
#include <cstdint>
#include <vector>

#include "engine/effects.h"
#include "engine/sglang/core.h"
#include "engine/sglang/request_state.h"
#include "engine/welford.h"

namespace dynosim::engine::sglang {

RankMetrics SglangCore::Metrics() const {
  return {
      .active_blocks = cache_.capacity() - cache_.free(),
      .inactive_blocks = 0,
      .total_blocks = cache_.capacity(),
      .running_requests = running_.size() + tokenless_.size(),
      .waiting_requests = waiting_.size() + prebuilt_.size() + pending_.size() + reserved_count_,
      .preemptions_total = retractions_,
      .cache_hit_tokens = hit_tokens_,
      .cache_total_tokens = hit_tokens_ + computed_tokens_};
}

// Taken before any token is given: lengths are those at scheduling.
void SglangCore::FillMetrics() {
  Welford prefill;
  Welford decode;
  for (const Chunk& chunk : batch_) {
    ++metrics_.prefill_requests;
    metrics_.prefill_tokens += chunk.tokens;
    metrics_.prefill_kv_tokens += chunk.start;
    prefill.Add(static_cast<double>(slots_[chunk.slot].prompt));
  }
  metrics_.prefill_length_variance = prefill.Variance();
  if (!batch_.empty()) {
    return;
  }
  for (const Running& entry : running_) {
    const std::uint64_t length = slots_[entry.slot].length;
    ++metrics_.decode.requests;
    metrics_.decode.tokens += length;
    decode.Add(static_cast<double>(length));
  }
  metrics_.decode.variance = decode.Variance();
}

void SglangCore::FillQueueMetrics() {
  Welford prefill;
  Welford decode;
  const auto add = [&](std::uint32_t slot, bool fresh) {
    const std::uint64_t length = slots_[slot].length;
    ForwardPassMetrics::Group& group = fresh ? metrics_.queued_prefill : metrics_.queued_decode;
    ++group.requests;
    group.tokens += length;
    (fresh ? prefill : decode).Add(static_cast<double>(length));
  };
  for (const std::uint32_t slot : waiting_) {
    add(slot, slots_[slot].generated() == 0);
  }
  for (const std::uint32_t slot : prebuilt_) {
    add(slot, false);
  }
  for (const std::uint32_t slot : pending_) {
    add(slot, false);
  }
  metrics_.queued_prefill.variance = prefill.Variance();
  metrics_.queued_decode.variance = decode.Variance();
}

void SglangCore::AppendHeldGroups(std::vector<std::uint32_t>& groups) const {
  cache_.AppendGroups(groups);
  for (const RequestState& r : slots_) {
    r.names.AppendGroups(groups);
  }
}

}  // namespace dynosim::engine::sglang
