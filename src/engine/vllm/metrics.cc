// SPDX-License-Identifier: Apache-2.0
// Forward-pass metrics of one pass (chapter 10, section 9).
#include <cstdint>
#include <vector>

#include "engine/effects.h"
#include "engine/vllm/core.h"
#include "engine/vllm/request_state.h"
#include "engine/welford.h"

namespace dynosim::engine::vllm {

// Taken after scheduling and before emission: lengths are those at scheduling.
void VllmCore::FillMetrics() {
  metrics_ = {};
  Welford prefill;
  Welford decode;
  for (std::uint32_t s = running_head_; s != kNoSlot; s = slots_[s].next) {
    const RequestState& r = slots_[s];
    if (r.scheduled_pass != pass_) {
      continue;
    }
    if (r.scheduled_prompt > 0) {
      ++metrics_.prefill_requests;
      metrics_.prefill_tokens += r.scheduled_total;
      metrics_.prefill_kv_tokens += r.scheduled_prefix;
      prefill.Add(static_cast<double>(r.prompt));
    } else if (!r.complete()) {
      ++metrics_.decode.requests;
      metrics_.decode.tokens += r.length;
      decode.Add(static_cast<double>(r.length));
    }
  }
  metrics_.prefill_length_variance = prefill.Variance();
  metrics_.decode.variance = decode.Variance();
}

void VllmCore::FillQueueMetrics() {
  Welford prefill;
  Welford decode;
  for (const std::uint32_t s : waiting_) {
    const RequestState& r = slots_[s];
    ForwardPassMetrics::Group& group =
        r.status == Status::kWaiting ? metrics_.queued_prefill : metrics_.queued_decode;
    ++group.requests;
    group.tokens += r.length;
    (r.status == Status::kWaiting ? prefill : decode).Add(static_cast<double>(r.length));
  }
  metrics_.queued_prefill.variance = prefill.Variance();
  metrics_.queued_decode.variance = decode.Variance();
}

void VllmCore::AppendHeldGroups(std::vector<std::uint32_t>& groups) const {
  pool_.AppendGroups(groups);
  for (const RequestState& r : slots_) {
    r.names.AppendGroups(groups);
  }
}

}  // namespace dynosim::engine::vllm
