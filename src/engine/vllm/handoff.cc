// SPDX-License-Identifier: Apache-2.0
// Both sides of a prefill/decode handoff (chapter 10, section 5.6; chapter 30, section 6.2).
//
// A source keeps the KV of a finished prompt until its release. A destination reserves blocks for
// the whole prompt in order of acceptance, gets the KV by activation, and joins the next pass as if
// it had computed its prompt.
#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/check.h"
#include "engine/effects.h"
#include "engine/vllm/core.h"
#include "engine/vllm/request_state.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::engine::vllm {

void VllmCore::Hold(std::uint32_t slot, PassEffects& effects) {
  RequestState& r = slots_[slot];
  RunningRemove(slot);
  r.status = Status::kHeld;
  ++held_count_;
  effects.held.push_back(r.id);
  effect_ = true;
}

void VllmCore::ReleaseSource(std::uint32_t request) { CancelSource(request); }

void VllmCore::CancelSource(std::uint32_t request) {
  const std::uint32_t* found = handoffs_.Find(request);
  if (found != nullptr) {
    Drop(*found);
  }
}

bool VllmCore::Cancel(std::uint32_t request) {
  const std::uint32_t slot = SlotOf(request);
  if (slot == kNoSlot) {
    return false;
  }
  if (options_.events != nullptr) {
    options_.events->BeginPass(pass_);
  }
  Drop(slot);
  return true;
}

std::uint32_t VllmCore::SlotOf(std::uint32_t request) const {
  if (const std::uint32_t* found = handoffs_.Find(request)) {
    return *found;
  }
  for (std::uint32_t s = running_head_; s != kNoSlot; s = slots_[s].next) {
    if (slots_[s].id == request) {
      return s;
    }
  }
  const auto found =
      std::ranges::find_if(waiting_, [&](std::uint32_t s) { return slots_[s].id == request; });
  return found == waiting_.end() ? kNoSlot : *found;
}

void VllmCore::CancelDestination(std::uint32_t request) {
  const std::uint32_t* found = handoffs_.Find(request);
  if (found != nullptr) {
    Drop(*found);
  }
}

// Takes a request out of whatever state it is in and gives back what it holds.
void VllmCore::Drop(std::uint32_t slot) {
  RequestState& r = slots_[slot];
  switch (r.status) {
    case Status::kWaiting:
    case Status::kPreempted:
    case Status::kActivated:
      WaitingRemove(slot);
      break;
    case Status::kRunning:
      if (steady_count_ > 0) {
        Demote(applied_pass_, false);
      }
      RunningRemove(slot);
      break;
    case Status::kHeld:
      --held_count_;
      break;
    case Status::kPending:
      if (pending_.front() == slot) {
        failed_generation_ = kUnlimited;
      }
      std::erase(pending_, slot);
      break;
    case Status::kReserved:
      pool_.CommitReservation(r.table, BlocksFor(r.prompt));
      --reserved_count_;
      break;
  }
  pool_.Release(r.table);
  r.track = {};
  Forget(r.id);
  free_slots_.push_back(slot);
  head_blocked_ = false;
  ++generation_;
}

bool VllmCore::QueueReservation(const workload::Request& request,
                                const workload::RequestSource& source, Rejection& why) {
  const std::uint32_t slot = NewSlot();
  RequestState& r = slots_[slot];
  Load(r, request, source);
  if (RejectUpFront(r, why)) {
    free_slots_.push_back(slot);
    return false;
  }
  r.status = Status::kPending;
  r.accepted = next_accepted_++;
  *handoffs_.TryInsert(request.id, slot).first = slot;
  if (pending_.empty()) {
    failed_generation_ = kUnlimited;
  }
  pending_.push_back(slot);
  head_blocked_ = false;  // who may join the next pass has changed
  return true;
}

std::optional<Grant> VllmCore::TryReserve() {
  if (pending_.empty() || failed_generation_ == generation_) {
    return std::nullopt;
  }
  RequestState& r = slots_[pending_.front()];
  const std::uint64_t total = BlocksFor(r.prompt);
  const std::uint64_t full = prefix_caching_ ? r.prompt / block_size_ : 0;
  if (options_.events != nullptr) {
    options_.events->BeginPass(pass_);
  }
  if (running_count_ >= max_num_seqs_ || !pool_.Reserve(r.table, r.names, full, total)) {
    failed_generation_ = generation_;
    return std::nullopt;
  }
  pending_.pop_front();
  failed_generation_ = kUnlimited;
  head_blocked_ = false;
  r.status = Status::kReserved;
  ++reserved_count_;
  return Grant{.request = r.id, .fresh_blocks = total - r.table.cached.size()};
}

void VllmCore::Activate(std::uint32_t request) {
  const std::uint32_t* found = handoffs_.Find(request);
  if (found == nullptr || slots_[*found].status != Status::kReserved) {
    return;
  }
  const std::uint32_t slot = *found;
  RequestState& r = slots_[slot];
  pool_.CommitReservation(r.table, BlocksFor(r.prompt));
  --reserved_count_;
  r.computed = r.prompt;
  r.allocated = r.prompt;
  r.status = Status::kActivated;
  if (options_.events != nullptr) {
    options_.events->BeginPass(pass_);
  }
  PublishFull(r, 0, r.prompt);
  QueueActivated(slot);
}

// Before the first waiting request whose reservation was accepted later.
void VllmCore::QueueActivated(std::uint32_t slot) {
  const std::uint64_t accepted = slots_[slot].accepted;
  const auto later = std::ranges::find_if(
      waiting_, [&](std::uint32_t s) { return slots_[s].accepted > accepted; });
  waiting_.insert(later, slot);
  head_blocked_ = false;
}

std::uint32_t VllmCore::FirstActivated() const {
  const auto found = std::ranges::find_if(
      waiting_, [&](std::uint32_t s) { return slots_[s].status == Status::kActivated; });
  return found == waiting_.end() ? kNoSlot : *found;
}

// Who may be admitted next: strictly the head, but while a reservation is pending only requests
// whose KV has arrived.
std::uint32_t VllmCore::Candidate() const {
  return pending_.empty() ? waiting_.front() : FirstActivated();
}

bool VllmCore::ActWhenStuck(PassEffects& effects) {
  // A reservation that is granted but not activated yet will change the state by itself.
  if (!stuck_ || reserved_count_ > 0 || (waiting_.empty() && running_count_ == 0)) {
    return false;
  }
  effects.Clear();
  const std::uint32_t activated = FirstActivated();
  if (running_count_ == 0 && activated != kNoSlot && waiting_.front() != activated) {
    std::ranges::stable_partition(
        waiting_, [&](std::uint32_t s) { return slots_[s].status == Status::kActivated; });
  } else {
    Unstick();
    SignalRejections(effects);
  }
  stuck_ = false;
  return true;
}

}  // namespace dynosim::engine::vllm
