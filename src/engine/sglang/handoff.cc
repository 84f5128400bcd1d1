// SPDX-License-Identifier: Apache-2.0
// Both sides of a prefill/decode handoff (chapter 20, section 11), cancellation, and what frees a
// rank that cannot proceed (chapter 05, rule 1 b).
//
// A source keeps pages and lock of a finished prompt until its release. A destination reserves
// pages for the whole prompt in order of acceptance, gets the KV by activation, and joins the next
// pass.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/check.h"
#include "engine/effects.h"
#include "engine/settings.h"
#include "engine/sglang/core.h"
#include "engine/sglang/request_state.h"
#include "kv/radix_cache.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::engine::sglang {

void SglangCore::Forget(const RequestState& r) {
  if (role_ != WorkerRole::kAggregated) {
    handoffs_.Erase(r.id);
  }
}

void SglangCore::Hold(std::uint32_t slot, PassEffects& effects) {
  RequestState& r = slots_[slot];
  r.state = State::kHeld;
  ++held_count_;
  effects.held.push_back(r.id);
}

void SglangCore::ReleaseSource(std::uint32_t request) {
  const std::uint32_t* found = handoffs_.Find(request);
  if (found == nullptr) {
    return;
  }
  const std::uint32_t slot = *found;
  RequestState& r = slots_[slot];
  if (r.state != State::kHeld) {
    Drop(slot);
    return;
  }
  --held_count_;
  events_.BeginPass(pass_);
  Release(r);
  Forget(r);
  free_slots_.push_back(slot);
  ++generation_;
}

void SglangCore::CancelSource(std::uint32_t request) { DropHandoff(request); }

void SglangCore::CancelDestination(std::uint32_t request) { DropHandoff(request); }

void SglangCore::DropHandoff(std::uint32_t request) {
  if (const std::uint32_t* found = handoffs_.Find(request)) {
    Drop(*found);
  }
}

bool SglangCore::Cancel(std::uint32_t request) {
  const std::uint32_t slot = SlotOf(request);
  if (slot == kNoSlot) {
    return false;
  }
  Drop(slot);
  return true;
}

std::uint32_t SglangCore::SlotOf(std::uint32_t request) const {
  if (const std::uint32_t* found = handoffs_.Find(request)) {
    return *found;
  }
  for (const Running& entry : running_) {
    if (slots_[entry.slot].id == request) {
      return entry.slot;
    }
  }
  const auto found =
      std::ranges::find_if(waiting_, [&](std::uint32_t s) { return slots_[s].id == request; });
  return found == waiting_.end() ? kNoSlot : *found;
}

// Takes a request out of whatever state it is in and gives back what it holds.
void SglangCore::Drop(std::uint32_t slot) {
  RequestState& r = slots_[slot];
  switch (r.state) {
    case State::kWaiting: {
      Rejection ignored;
      doomed_count_ -= RejectUpFront(r, ignored) ? 1 : 0;
      std::erase(waiting_, slot);
      order_changed_ = true;
      break;
    }
    case State::kRunning:
      if (std::erase(tokenless_, slot) == 0) {
        TurnCalendarOff();
        running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(PositionOf(slot)));
        if (calendar_allowed_) {
          TurnCalendarOn();
        }
      }
      break;
    case State::kPrebuilt:
      std::erase(prebuilt_, slot);
      break;
    case State::kHeld:
      --held_count_;
      break;
    case State::kPending:
      if (pending_.front() == slot) {
        failed_generation_ = kUnlimited;
      }
      std::erase(pending_, slot);
      break;
    case State::kReserved:
      --reserved_count_;
      break;
  }
  head_ = {};  // the slot may come back with another request
  events_.BeginPass(pass_);
  GiveBack(r);
  r.track = {};
  Forget(r);
  free_slots_.push_back(slot);
  ++generation_;
}

bool SglangCore::QueueReservation(const workload::Request& request,
                                  const workload::RequestSource& source, Rejection& why) {
  const std::uint32_t slot = NewSlot();
  RequestState& r = slots_[slot];
  Load(r, request, source);
  if (RejectUpFront(r, why)) {
    free_slots_.push_back(slot);
    return false;
  }
  r.state = State::kPending;
  handoffs_[request.id] = slot;
  if (pending_.empty()) {
    failed_generation_ = kUnlimited;
  }
  pending_.push_back(slot);
  return true;
}

std::optional<Grant> SglangCore::TryReserve() {
  if (pending_.empty() || failed_generation_ == generation_) {
    return std::nullopt;
  }
  const std::uint32_t slot = pending_.front();
  RequestState& r = slots_[slot];
  const std::uint64_t total = PagesFor(r.prompt);
  kv::RadixCache::Match match;
  if (prefix_caching_) {
    match = cache_.Lock(Names(r), WholePages(r.prompt), NextStamp());
  }
  if (total - match.pages > cache_.available()) {
    cache_.Unlock(match.node);
    failed_generation_ = generation_;
    return std::nullopt;
  }
  events_.BeginPass(pass_);
  TakePages(total - match.pages);
  r.node = match.node;
  r.cached_pages = r.announced_pages = match.pages;
  r.pages = total;
  r.state = State::kReserved;
  pending_.pop_front();
  failed_generation_ = kUnlimited;
  ++reserved_count_;
  return Grant{.request = r.id, .fresh_blocks = total - match.pages};
}

void SglangCore::Activate(std::uint32_t request) {
  const std::uint32_t* found = handoffs_.Find(request);
  if (found == nullptr || slots_[*found].state != State::kReserved) {
    return;
  }
  RequestState& r = slots_[*found];
  --reserved_count_;
  r.materialized = r.prompt;
  r.state = State::kPrebuilt;
  events_.BeginPass(pass_);
  if (events_.enabled()) {
    Names(r);
    events_.Store(r, WholePages(r.materialized));
  }
  const std::uint64_t free_before = cache_.free();
  CacheRunning(r, NextStamp());
  if (cache_.free() > free_before) {
    ++generation_;
  }
  prebuilt_.push_back(*found);
}

void SglangCore::RejectAt(std::size_t position, const Rejection& reason) {
  const std::uint32_t slot = waiting_[position];
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(position));
  order_changed_ = true;
  RequestState& r = slots_[slot];
  GiveBack(r);
  // Told after everything else that happens in the pass.
  rejected_.emplace_back(r.id, reason);
  r.track = {};
  Forget(r);
  free_slots_.push_back(slot);
  ++generation_;
  effect_ = true;
}

void SglangCore::SignalRejections(PassEffects& effects) {
  for (const auto& [id, reason] : rejected_) {
    effects.signals.push_back({.kind = Signal::Kind::kRejected,
                               .request = id,
                               .index = static_cast<std::uint32_t>(effects.rejections.size())});
    effects.rejections.push_back(reason);
  }
  rejected_.clear();
}

// The last pass took no time and changed nothing, so it would repeat for ever.
void SglangCore::Unstick() {
  const bool one_runs = running_.size() == 1;
  const auto holder =
      std::ranges::find_if(waiting_, [&](std::uint32_t s) { return slots_[s].pages > 0; });
  if (holder != waiting_.end() && (one_runs || (running_.empty() && !pending_.empty()))) {
    GiveBack(slots_[*holder]);
    decode_first_ = one_runs;
    ++generation_;
    effect_ = true;
    return;
  }
  if (one_runs && !prebuilt_.empty()) {
    const std::uint32_t slot = prebuilt_.back();
    prebuilt_.pop_back();
    GiveBack(slots_[slot]);
    slots_[slot].state = State::kWaiting;
    waiting_.push_back(slot);
    order_changed_ = true;
    ++retractions_;
    ++generation_;
    effect_ = true;
    return;
  }
  if (waiting_.empty() && one_runs) {
    TurnCalendarOff();
    const std::uint32_t slot = running_.front().slot;
    running_.clear();
    slots_[slot].state = State::kWaiting;
    waiting_.push_front(slot);
  }
  if (!waiting_.empty()) {
    const std::uint64_t needed = PagesFor(slots_[waiting_.front()].length);
    RejectAt(0, {Rejection::Reason::kNoProgress, needed, cache_.available()});
  }
}

bool SglangCore::ActWhenStuck(PassEffects& effects) {
  // A reservation that is granted but not activated yet will change the state by itself.
  if (!stuck_ || reserved_count_ > 0) {
    return false;
  }
  effects.Clear();
  effect_ = false;
  events_.BeginPass(pass_);
  Unstick();
  SignalRejections(effects);
  stuck_ = false;
  return effect_;
}

}  // namespace dynosim::engine::sglang
