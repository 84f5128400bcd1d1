// SPDX-License-Identifier: Apache-2.0
// Emission with speculative bursts (chapter 10, section 8).
#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "engine/effects.h"
#include "engine/settings.h"
#include "engine/vllm/core.h"
#include "engine/vllm/request_state.h"

namespace dynosim::engine::vllm {

// Sets blocks aside for the longest burst of every ready request, preempting running ones until
// that is possible. The scheduling of a victim stays charged to this pass. False when nobody is
// left.
bool VllmCore::ReserveBursts() {
  while (!ready_.empty()) {
    std::uint64_t blocks = 0;
    for (const std::uint32_t s : ready_) {
      const RequestState& r = slots_[s];
      const std::uint64_t burst = std::min(speculative_tokens_ + 1, r.final_length - r.length);
      blocks += BlocksFor(r.length + burst) - BlocksFor(r.length);
    }
    if (pool_.TakeUnnamed(blocks)) {
      burst_reserved_ = blocks;
      return true;
    }
    if (PreemptOne() == kNoSlot) {
      return false;
    }
    ready_.clear();
    for (std::uint32_t s = running_head_; s != kNoSlot; s = slots_[s].next) {
      if (slots_[s].computed == slots_[s].length && !slots_[s].complete()) {
        ready_.push_back(s);
      }
    }
  }
  return false;
}

void VllmCore::EmitBursts(PassEffects& effects) {
  for (const std::uint32_t s : ready_) {
    RequestState& r = slots_[s];
    const bool first = r.generated() == 0;
    const bool counted = r.scheduled_pass != pass_ || r.scheduled_prompt == 0;
    const std::uint64_t drawn = role_ == WorkerRole::kPrefill ? 1 : sampler_->Sample();
    const std::uint64_t burst = std::min(drawn, r.final_length - r.length);
    for (std::uint64_t i = 0; i < burst; ++i) {
      if (r.length % block_size_ == 0) {
        PublishFull(r, r.length - 1, r.length);
        // The next token starts a block; it comes out of what was set aside.
        if (r.table.blocks * block_size_ == r.length) {
          DYNO_DCHECK(burst_reserved_ > 0);
          --burst_reserved_;
          ++r.table.blocks;
          ++running_blocks_;
        }
      }
      ++r.length;
    }
    r.allocated = std::max(r.allocated, r.length);
    r.computed = r.length - 1;
    if (counted) {
      effects.decode_tokens += burst;
    }
    GiveToken(r, burst);
    SignalEmission(s, first, effects);
  }
  pool_.ReturnUnnamed(burst_reserved_);
  burst_reserved_ = 0;
}

}  // namespace dynosim::engine::vllm
