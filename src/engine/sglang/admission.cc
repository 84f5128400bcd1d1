// SPDX-License-Identifier: Apache-2.0
// From the waiting queue to a prefill batch (chapter 20, sections 4, 5 and 10).
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engine/effects.h"
#include "engine/settings.h"
#include "engine/sglang/core.h"
#include "engine/sglang/request_state.h"
#include "kv/sequence_blocks.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::engine::sglang {

namespace {

// Longest-prefix-first ordering is too costly for the engine beyond this queue length.
constexpr std::size_t kLongestOrderedQueue = 128;
// A request with no longer match than this yields to an earlier one with the same first tokens.
constexpr std::uint64_t kShortMatch = 32;

}  // namespace

void SglangCore::Load(RequestState& r, const workload::Request& request,
                      const workload::RequestSource& source) {
  r.id = request.id;
  r.prompt = request.prompt_tokens;
  r.output = request.output_tokens;
  if (role_ == WorkerRole::kPrefill) {
    r.output = std::min<std::uint64_t>(r.output, 1);
  }
  if (max_model_len_ != kUnlimited) {
    r.output = std::min(r.output, max_model_len_ > r.prompt ? max_model_len_ - r.prompt : 0);
  }
  r.length = r.prompt;
  r.unread = &source;
  r.generated_shared = source.SharesGeneratedBlocks();
}

kv::SequenceBlocks& SglangCore::Names(RequestState& r) {
  if (r.unread != nullptr) {
    r.unread->Blocks(r.id, page_size_, r.names.extents());
    r.names.Rewind();
    r.unread = nullptr;
  }
  return r.names;
}

void SglangCore::Submit(const workload::Request& request, const workload::RequestSource& source) {
  const std::uint32_t slot = NewSlot();
  RequestState& r = slots_[slot];
  Load(r, request, source);
  r.state = State::kWaiting;
  Rejection ignored;
  doomed_count_ += RejectUpFront(r, ignored) ? 1 : 0;
  if (role_ != WorkerRole::kAggregated) {
    handoffs_[request.id] = slot;
  }
  waiting_.push_back(slot);
  order_changed_ = true;
}

bool SglangCore::RejectUpFront(const RequestState& r, Rejection& rejection) const {
  if (r.prompt >= max_model_len_) {
    rejection = {Rejection::Reason::kContextLimit, r.prompt, max_model_len_};
    return true;
  }
  if (PagesFor(r.prompt) > cache_.capacity()) {
    rejection = {Rejection::Reason::kPromptOverPool, PagesFor(r.prompt), cache_.capacity()};
    return true;
  }
  if (r.output >= 2 && PagesFor(r.final_length()) > cache_.capacity()) {
    rejection = {Rejection::Reason::kTotalOverPool, PagesFor(r.final_length()), cache_.capacity()};
    return true;
  }
  return false;
}

// Everybody in the queue is looked at, not only the head.
void SglangCore::RejectDoomed() {
  if (doomed_count_ == 0) {
    return;
  }
  Rejection reason;
  for (std::size_t i = 0; i < waiting_.size();) {
    if (RejectUpFront(slots_[waiting_[i]], reason)) {
      RejectAt(i, reason);
    } else {
      ++i;
    }
  }
  doomed_count_ = 0;
}

void SglangCore::PromotePrebuilt(PassEffects& effects) {
  while (!prebuilt_.empty() && running_.size() + tokenless_.size() < max_num_seqs_) {
    const std::uint32_t slot = prebuilt_.front();
    prebuilt_.pop_front();
    RequestState& r = slots_[slot];
    effects.admissions.push_back({r.id, 0});
    effect_ = true;
    r.state = State::kRunning;
    if (r.remaining() == 0) {
      tokenless_.push_back(slot);
    } else {
      JoinRunning(slot);
    }
  }
}

bool SglangCore::OrdersQueue() const {
  return longest_prefix_first_ && !waiting_.empty() && waiting_.size() <= kLongestOrderedQueue;
}

bool SglangCore::OrderIsCurrent() const {
  return !order_changed_ && ordered_version_ == cache_.version() &&
         ordered_evictions_ == cache_.evictions();
}

void SglangCore::OrderQueue() {
  if (!OrdersQueue() || OrderIsCurrent()) {
    return;
  }
  scored_.clear();
  short_prefixes_.Clear();
  const std::uint64_t shared_pages = PagesFor(kShortMatch);
  for (const std::uint32_t slot : waiting_) {
    RequestState& r = slots_[slot];
    const std::uint64_t match = cache_.Find(Names(r), WholePages(r.length)).pages * page_size_;
    bool demoted = false;
    if (match <= kShortMatch && WholePages(r.length) >= shared_pages) {
      const kv::SequenceBlocks::Run last = r.names.At(static_cast<std::uint32_t>(shared_pages - 1));
      demoted =
          !short_prefixes_.TryInsert((kv::BlockName{last.group} << 32U) | last.offset, slot).second;
    }
    scored_.push_back({slot, demoted, match});
  }
  std::ranges::stable_sort(scored_, [](const Scored& a, const Scored& b) {
    return a.demoted != b.demoted ? !a.demoted : a.match > b.match;
  });
  for (std::size_t i = 0; i < scored_.size(); ++i) {
    waiting_[i] = scored_[i].slot;
  }
  order_changed_ = false;
  ordered_version_ = cache_.version();
  ordered_evictions_ = cache_.evictions();
}

// Pages of the head that are cached. At least one token is left to compute, unless none is to come.
std::uint64_t SglangCore::HeadMatch(RequestState& r) {
  const auto slot = static_cast<std::uint32_t>(&r - slots_.data());
  if (head_.slot != slot || head_.version != cache_.version() || head_.length != r.length) {
    const std::uint64_t limit = WholePages(r.output == 0 ? r.length : r.length - 1);
    head_ = {.slot = slot,
             .version = cache_.version(),
             .length = r.length,
             .match = cache_.Find(Names(r), limit)};
    cache_.Watch(head_.match);
  }
  return head_.match.pages;
}

SglangCore::Plan SglangCore::PlanChunk(RequestState& r, std::uint64_t input_budget,
                                       std::uint64_t chunk_budget) {
  Plan plan;
  plan.start = r.materialized;
  if (r.materialized == 0 && prefix_caching_) {
    plan.start = HeadMatch(r) * page_size_;
  }
  const std::uint64_t missing = r.length - plan.start;
  if (missing == 0 && r.materialized > 0) {
    return plan;
  }
  plan.chunk = missing;
  if (PagesFor(missing) * page_size_ > chunk_budget) {
    plan.chunk = std::min(missing, WholePages(chunk_budget) * page_size_);
    if (plan.chunk == 0) {
      return plan;
    }
  }
  plan.need = PagesFor(plan.chunk) * page_size_;
  plan.output = plan.chunk < missing ? 0 : std::min(r.remaining(), clip_tokens_);
  plan.possible = plan.need <= input_budget && plan.need <= chunk_budget;
  return plan;
}

std::uint64_t SglangCore::RemainingAt(const Running& entry) const {
  return calendar_ ? entry.end - decode_ : slots_[entry.slot].remaining();
}

// Tokens that the running requests are expected to need; summed in running order, since the sum is
// rounded.
double SglangCore::ReservedTokens() const {
  double sum = 0.0;
  for (const Running& entry : running_) {
    sum += static_cast<double>(std::min(RemainingAt(entry), clip_tokens_)) * ratio_;
  }
  return sum;
}

void SglangCore::FormBatch(PassEffects& effects) {
  batch_.clear();
  const std::uint64_t running = running_.size() + tokenless_.size();
  if (waiting_.empty() || AdmissionPaused() || running >= max_num_seqs_) {
    return;
  }
  const std::uint64_t places = max_num_seqs_ - running;
  double tokens_left = static_cast<double>(cache_.available() * page_size_) - ReservedTokens();
  std::uint64_t input_left = max_prefill_tokens_;
  std::uint64_t chunk_left = chunk_tokens_;
  while (batch_.size() < places && !waiting_.empty()) {
    const std::uint32_t slot = waiting_.front();
    RequestState& r = slots_[slot];
    const Plan plan = PlanChunk(r, input_left, chunk_left);
    const std::uint64_t cost = plan.need + plan.output;
    if (!plan.possible || static_cast<double>(cost) >= tokens_left) {
      return;
    }
    const bool first = r.materialized == 0;
    if (!Place(r, plan)) {
      return;
    }
    if (first) {
      effects.admissions.push_back({r.id, plan.start});
      hit_tokens_ += plan.start;
    }
    tokens_left -= static_cast<double>(cost);
    input_left -= plan.need;
    chunk_left -= plan.need;
    waiting_.pop_front();
    order_changed_ = true;
    batch_.push_back({.slot = slot, .start = plan.start, .tokens = plan.chunk});
    if (chunk_left == 0) {
      return;
    }
  }
}

// Takes the pages of a chunk; false, and nothing but stamps changed, when they are not there.
bool SglangCore::Place(RequestState& r, const Plan& plan) {
  const bool first = r.materialized == 0;
  const std::uint64_t cached = first ? WholePages(plan.start) : 0;
  const std::uint64_t total = PagesFor(plan.start + plan.chunk);
  const std::uint64_t fresh = total - (first ? cached : r.pages);
  if (first && prefix_caching_) {
    r.node = cache_.Lock(Names(r), cached, NextStamp()).node;
  }
  if (fresh > cache_.available()) {
    if (first) {
      cache_.Unlock(r.node);
      r.node = kv::RadixCache::kRoot;
    }
    return false;
  }
  TakePages(fresh);
  if (first) {
    r.cached_pages = cached;
    r.announced_pages = cached;
  }
  r.pages = total;
  r.materialized = plan.start + plan.chunk;
  if (events_.enabled()) {
    Names(r);
    events_.Store(r, WholePages(r.materialized));
  }
  return true;
}

std::uint32_t SglangCore::NewSlot() {
  if (free_slots_.empty()) {
    slots_.emplace_back();
    return static_cast<std::uint32_t>(slots_.size() - 1);
  }
  const std::uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  // Keep the buffer, reset the rest.
  RequestState fresh;
  std::swap(fresh.names, slots_[slot].names);
  slots_[slot] = std::move(fresh);
  if (head_.slot == slot) {
    head_.slot = kNoSlot;
  }
  return slot;
}

void SglangCore::JoinRunning(std::uint32_t slot) {
  RequestState& r = slots_[slot];
  r.state = State::kRunning;
  r.order = next_order_++;
  if (calendar_ && !FitsCalendar(r)) {
    TurnCalendarOff();
  }
  running_.push_back({slot, 0});
  if (calendar_) {
    AddToCalendar(running_.back());
  }
}

std::size_t SglangCore::PositionOf(std::uint32_t slot) const {
  const auto found = std::ranges::lower_bound(
      running_, slots_[slot].order, {}, [&](const Running& e) { return slots_[e.slot].order; });
  DYNO_DCHECK(found != running_.end() && found->slot == slot);
  return static_cast<std::size_t>(found - running_.begin());
}

}  // namespace dynosim::engine::sglang
