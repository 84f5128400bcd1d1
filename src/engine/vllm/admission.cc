// SPDX-License-Identifier: Apache-2.0
// Admission of the waiting head (chapter 10, sections 3.1 and 7), rejections, and the lists that
// requests move between.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "engine/effects.h"
#include "engine/vllm/core.h"
#include "engine/vllm/request_state.h"

namespace dynosim::engine::vllm {

bool VllmCore::RejectUpFront(const RequestState& r, Rejection& rejection) const {
  if (max_model_len_ != kUnlimited && r.prompt >= max_model_len_) {
    rejection = {Rejection::Reason::kContextLimit, r.prompt, max_model_len_};
    return true;
  }
  if (r.status != Status::kWaiting) {
    return false;
  }
  // The KV that the whole request needs at its end. Without speculation the last token needs none.
  std::uint64_t tokens = r.prompt;
  if (reserve_to_completion_) {
    tokens = r.prompt + r.output;
  } else if (speculative_tokens_ > 0) {
    tokens = r.final_length;
  } else {
    tokens = std::max(r.final_length, r.prompt + 1) - 1;
  }
  const std::uint64_t blocks = BlocksFor(tokens);
  if (blocks <= pool_.capacity()) {
    return false;
  }
  const bool prompt_alone = BlocksFor(r.prompt) > pool_.capacity();
  rejection = {
      prompt_alone ? Rejection::Reason::kPromptOverPool : Rejection::Reason::kTotalOverPool,
      prompt_alone ? BlocksFor(r.prompt) : blocks, pool_.capacity()};
  return true;
}

VllmCore::Cost VllmCore::LookUp(RequestState& r, bool keep_last_block) {
  Cost cost;
  if (prefix_caching_ && r.hashed_blocks > 0) {
    const kv::BlockPool::Overlap overlap = pool_.Match(r.names, r.hashed_blocks);
    cost.cached = std::min(overlap.blocks * block_size_, r.length);
    cost.active_cached = std::min(overlap.active * block_size_, r.length);
  }
  if (!reserve_to_completion_ && !keep_last_block) {
    // At least one token must be computed to give the next one, and blocks are computed whole.
    const std::uint64_t cap = (r.length - 1) / block_size_ * block_size_;
    cost.cached = std::min(cost.cached, cap);
    cost.active_cached = std::min(cost.active_cached, cap);
    if (speculative_tokens_ > 0 && cost.cached >= block_size_) {
      cost.cached -= block_size_;
      cost.active_cached = std::min(cost.active_cached, cost.cached);
    }
  }
  cost.new_tokens = r.length - cost.cached;
  return cost;
}

std::uint64_t VllmCore::BlocksToFinish(const RequestState& r, std::uint64_t active_cached) const {
  const std::uint64_t full = BlocksFor(r.prompt + r.output);
  const std::uint64_t have =
      r.allocated == 0 ? active_cached / block_size_ : BlocksFor(r.allocated);
  return full > have ? full - have : 0;
}

VllmCore::Decision VllmCore::Admit(RequestState& r, Cost& cost, Rejection& rejection) {
  if (r.status == Status::kActivated) {
    return Decision::kAdmit;  // its blocks are here
  }
  if (RejectUpFront(r, rejection)) {
    return Decision::kReject;
  }
  cost = LookUp(r, r.output <= r.generated());
  const std::uint64_t unused = pool_.capacity() - pool_.active();
  if (reserve_to_completion_) {
    const std::uint64_t promised = running_full_blocks_ - running_blocks_;
    const std::uint64_t available = unused > promised ? unused - promised : 0;
    return BlocksToFinish(r, cost.active_cached) > available ? Decision::kWait : Decision::kAdmit;
  }
  const std::uint64_t all = BlocksFor(r.length);
  const std::uint64_t held = cost.active_cached / block_size_;
  return (all > held ? all - held : 0) > unused ? Decision::kWait : Decision::kAdmit;
}

void VllmCore::SignalRejections(PassEffects& effects) {
  for (const auto& [id, reason] : rejected_) {
    effects.signals.push_back({.kind = Signal::Kind::kRejected,
                               .request = id,
                               .index = static_cast<std::uint32_t>(effects.rejections.size())});
    effects.rejections.push_back(reason);
  }
  rejected_.clear();
}

// A pass that took no time and changed nothing would repeat for ever: the request that holds the
// rank up leaves it (chapter 05, rule 1 b).
void VllmCore::Unstick() {
  if (!waiting_.empty()) {
    const RequestState& r = slots_[waiting_.front()];
    const std::uint64_t pool_blocks = pool_.capacity();
    if (!chunked_prefill_ && r.prompt > max_batched_tokens_) {
      RejectHead({Rejection::Reason::kTokenBudget, r.prompt, max_batched_tokens_});
    } else {
      RejectHead(
          {Rejection::Reason::kNoProgress, BlocksFor(r.length), pool_blocks - pool_.active()});
    }
    return;
  }
  if (running_count_ == 0) {
    return;
  }
  if (steady_count_ > 0) {
    Demote(pass_, true);
  }
  const std::uint32_t slot = running_tail_;
  RunningRemove(slot);
  waiting_.push_front(slot);
  RejectHead({Rejection::Reason::kNoProgress, BlocksFor(slots_[slot].length),
              pool_.free() + pool_.inactive()});
}

std::uint32_t VllmCore::NewSlot() {
  if (free_slots_.empty()) {
    slots_.emplace_back();
    return static_cast<std::uint32_t>(slots_.size() - 1);
  }
  const std::uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  // Keep the buffers, reset the rest.
  RequestState fresh;
  std::swap(fresh.table.cached, slots_[slot].table.cached);
  std::swap(fresh.names, slots_[slot].names);
  slots_[slot] = std::move(fresh);
  return slot;
}

void VllmCore::RunningAppend(std::uint32_t slot) {
  RequestState& r = slots_[slot];
  r.order = next_order_++;
  r.prev = running_tail_;
  r.next = kNoSlot;
  (running_tail_ == kNoSlot ? running_head_ : slots_[running_tail_].next) = slot;
  running_tail_ = slot;
  if (first_explicit_ == kNoSlot) {
    first_explicit_ = slot;
  }
  ++running_count_;
  if (reserve_to_completion_) {
    running_full_blocks_ += BlocksFor(r.prompt + r.output);
  }
  running_blocks_ += r.table.blocks;
}

void VllmCore::RunningRemove(std::uint32_t slot) {
  RequestState& r = slots_[slot];
  if (r.steady) {
    DueRemove(slot);
    --steady_count_;
    steady_base_sum_ -= r.base;
    r.steady = false;
  } else if (first_explicit_ == slot) {
    first_explicit_ = r.next;
  }
  (r.prev == kNoSlot ? running_head_ : slots_[r.prev].next) = r.next;
  (r.next == kNoSlot ? running_tail_ : slots_[r.next].prev) = r.prev;
  --running_count_;
  if (reserve_to_completion_) {
    running_full_blocks_ -= BlocksFor(r.prompt + r.output);
  }
  running_blocks_ -= r.table.blocks;
}

void VllmCore::WaitingRemove(std::uint32_t slot) {
  if (waiting_.front() == slot) {
    waiting_.pop_front();
  } else {
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), slot));
  }
}

}  // namespace dynosim::engine::vllm
