// SPDX-License-Identifier: Apache-2.0
// The calendar: what lets a decode pass cost nothing per running request. Decode passes are counted
// (decode_); request r has d + base tokens after decode pass d, takes a page in passes
// d = 1 - base (mod page size) and ends in pass final length - base.
//
// Only three things happen to the pool in such passes: pages are taken, old leaves are evicted for
// them in the same order as pass by pass, and leaves of running requests grow. A request that is
// the only holder of a leaf of generated pages grows it unseen; its leaf and ancestors get the
// stamp of its last completed page when it leaves, and until then nobody reads it, since they are
// locked. Any other request inserts its next complete page in the pass that completes it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "base/check.h"
#include "engine/effects.h"
#include "engine/settings.h"
#include "engine/sglang/core.h"
#include "engine/sglang/request_state.h"
#include "timing/model.h"

namespace dynosim::engine::sglang {

namespace {

// Orders the heaps: earliest pass first, then running order.
constexpr auto kLater = [](const auto& a, const auto& b) {
  return a.pass != b.pass ? a.pass > b.pass : a.order > b.order;
};

// The sum of reserved tokens is rounded in running order; comparisons closer than this are left to
// the pass itself.
constexpr double kReserveMargin = 1e-3;

std::uint64_t Plus(std::uint64_t a, std::int64_t b) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(a) + b);
}

std::uint64_t GrowerKey(const RequestState& r, std::uint64_t page_size) {
  const auto size = static_cast<std::int64_t>(page_size);
  const std::int64_t key = (1 - r.base) % size;
  return static_cast<std::uint64_t>(key < 0 ? key + size : key);
}

}  // namespace

bool SglangCore::FitsCalendar(const RequestState& r) const {
  return !r.generated_shared && (!prefix_caching_ || r.cached_pages == WholePages(r.length));
}

void SglangCore::TurnCalendarOn() {
  for (const Running& entry : running_) {
    if (!FitsCalendar(slots_[entry.slot])) {
      return;
    }
  }
  calendar_ = true;
  for (Running& entry : running_) {
    AddToCalendar(entry);
  }
}

void SglangCore::TurnCalendarOff() {
  if (!calendar_) {
    return;
  }
  for (const Running& entry : running_) {
    RequestState& r = slots_[entry.slot];
    SettleTree(r, decode_);
    SettleTrack(r, decode_);
    RemoveFromCalendar(r);
  }
  ends_.clear();
  page_ends_.clear();
  calendar_ = false;
}

void SglangCore::AddToCalendar(Running& entry) {
  RequestState& r = slots_[entry.slot];
  r.base = static_cast<std::int64_t>(r.length) - static_cast<std::int64_t>(decode_);
  r.since = decode_;
  r.segment = segments_dropped_ + segments_.size();
  r.stamped_pages = r.cached_pages;
  base_sum_ += r.base;
  ++growers_[GrowerKey(r, page_size_)];
  entry.end = Plus(r.final_length(), -r.base);
  ends_.push_back({entry.end, r.order, entry.slot});
  std::ranges::push_heap(ends_, kLater);
  AwaitPage(entry.slot);
}

void SglangCore::RemoveFromCalendar(RequestState& r) {
  base_sum_ -= r.base;
  --growers_[GrowerKey(r, page_size_)];
  if (r.live) {
    cache_.ClearGrowing(r.node);
    r.live = false;
  }
}

// A leaf that holds a generated page and nobody else's lock can only be extended by its holder.
// Otherwise the next complete page needs to be inserted in its own pass, unless the request ends
// with it.
void SglangCore::AwaitPage(std::uint32_t slot) {
  if (!prefix_caching_) {
    return;
  }
  RequestState& r = slots_[slot];
  if (!events_.enabled() && r.cached_pages > WholePages(r.prompt) && cache_.CanGrow(r.node)) {
    r.live = true;
    cache_.SetGrowing(r.node, slot);
    return;
  }
  const std::uint64_t complete = Plus((r.cached_pages + 1) * page_size_, -r.base);
  if (complete < Plus(r.final_length(), -r.base)) {
    page_ends_.push_back({complete, r.order, slot});
    std::ranges::push_heap(page_ends_, kLater);
  }
}

void SglangCore::CatchUp(std::uint32_t owner) {
  RequestState& r = slots_[owner];
  const std::uint64_t whole = WholePages(Plus(decode_, r.base));
  if (whole > r.cached_pages) {
    cache_.Grow(r.node, r.names, r.cached_pages, whole);
    r.cached_pages = whole;
  }
}

// Brings the counters and the leaf of a request to the end of decode pass `decode`.
void SglangCore::SettleTree(RequestState& r, std::uint64_t decode) {
  r.length = r.materialized = Plus(decode, r.base);
  r.pages = PagesFor(r.length);
  if (!prefix_caching_) {
    return;
  }
  const std::uint64_t whole = WholePages(r.length);
  if (whole > r.cached_pages) {
    DYNO_DCHECK(r.live);
    cache_.Grow(r.node, r.names, r.cached_pages, whole);
    r.cached_pages = whole;
  }
  if (whole > r.stamped_pages) {
    cache_.Touch(r.node, DecodeStamp(Plus(whole * page_size_, -r.base), r));
    r.stamped_pages = whole;
  }
}

// Adds the passes that gave tokens up to decode pass `decode` to the track.
void SglangCore::SettleTrack(RequestState& r, std::uint64_t decode) {
  auto& spans = r.track.spans;
  if (spans.empty()) {
    r.track.first_burst = 1;
  }
  // The segment before the remembered one may have gone on.
  std::size_t i = r.segment > segments_dropped_ ? r.segment - segments_dropped_ - 1 : 0;
  for (std::uint64_t done = r.since; done < decode; ++i) {
    const Segment& segment = segments_[i];
    const std::uint64_t last =
        i + 1 < segments_.size() ? std::min(segments_[i + 1].decode - 1, decode) : decode;
    if (last <= done) {
      continue;
    }
    const std::uint64_t first_pass =
        segment.pass + std::max(done + 1, segment.decode) - segment.decode;
    const std::uint64_t last_pass = segment.pass + last - segment.decode;
    if (!spans.empty() && spans.back().last + 1 == first_pass) {
      spans.back().last = last_pass;
    } else {
      spans.push_back({first_pass, last_pass});
    }
    done = last;
  }
  r.since = decode;
}

void SglangCore::NoteDecodePass(std::uint64_t decode, std::uint64_t pass) {
  if (!segments_.empty() && segments_.back().pass + decode - segments_.back().decode == pass) {
    return;
  }
  if (segments_.size() >= prune_at_) {
    PruneSegments();
  }
  segments_.push_back({.decode = decode, .pass = pass});
}

void SglangCore::PruneSegments() {
  std::uint64_t oldest = segments_dropped_ + segments_.size();
  if (calendar_) {
    for (const Running& entry : running_) {
      oldest = std::min(oldest, slots_[entry.slot].segment);
    }
  }
  const std::uint64_t keep_from = std::max(oldest, std::uint64_t{1}) - 1;
  if (keep_from > segments_dropped_) {
    const auto count = static_cast<std::ptrdiff_t>(keep_from - segments_dropped_);
    segments_.erase(segments_.begin(), segments_.begin() + count);
    segments_dropped_ = keep_from;
  }
  prune_at_ = 2 * segments_.size() + kFirstPrune;
}

// Pages that the running requests take in the next `passes` decode passes.
std::uint64_t SglangCore::GrowthPages(std::uint64_t passes) const {
  if (page_size_ == 1) {
    return passes * running_.size();
  }
  std::uint64_t pages = passes / page_size_ * running_.size();
  for (std::uint64_t i = 1; i <= passes % page_size_; ++i) {
    pages += growers_[(decode_ + i) % page_size_];
  }
  return pages;
}

// How many of the next `limit` decode passes can be made with `pages` pages.
std::uint64_t SglangCore::PassesThatFit(std::uint64_t limit, std::uint64_t pages) const {
  if (page_size_ == 1) {
    return std::min(limit, pages / running_.size());
  }
  if ((limit / page_size_ + 1) * running_.size() <= pages) {
    return limit;
  }
  std::uint64_t taken = 0;
  for (std::uint64_t i = 1; i <= limit; ++i) {
    taken += growers_[(decode_ + i) % page_size_];
    if (taken > pages) {
      return i - 1;
    }
  }
  return limit;
}

void SglangCore::GrowThrough(std::uint64_t decode, std::uint64_t begin, std::uint64_t first_pass) {
  if (!events_.enabled()) {
    TakePages(GrowthPages(decode - decode_));
    decode_ = decode;
    return;
  }
  while (decode_ < decode) {
    events_.BeginPass(first_pass + decode_ - begin);
    TakePages(GrowthPages(1));
    ++decode_;
  }
}

// Executes decode passes except for the requests that end with the last one. They are the passes
// from `first_pass` on of the worker.
void SglangCore::AdvanceTokens(std::uint64_t passes, std::uint64_t first_pass) {
  NoteDecodePass(decode_ + 1, first_pass);
  const std::uint64_t begin = decode_;
  const std::uint64_t last = begin + passes;
  while (!page_ends_.empty() && page_ends_.front().pass <= last) {
    const Due due = page_ends_.front();
    std::ranges::pop_heap(page_ends_, kLater);
    page_ends_.pop_back();
    GrowThrough(due.pass, begin, first_pass);
    RequestState& r = slots_[due.slot];
    r.length = r.materialized = Plus(due.pass, r.base);
    CacheRunning(r, DecodeStamp(due.pass, r));
    r.stamped_pages = r.cached_pages;
    AwaitPage(due.slot);
  }
  GrowThrough(last, begin, first_pass);
}

void SglangCore::FinishDue(PassEffects& effects) {
  while (!ends_.empty() && ends_.front().pass == decode_) {
    const std::uint32_t slot = ends_.front().slot;
    std::ranges::pop_heap(ends_, kLater);
    ends_.pop_back();
    RequestState& r = slots_[slot];
    SettleTree(r, decode_ - 1);
    SettleTrack(r, decode_);
    RemoveFromCalendar(r);
    r.length = r.materialized = r.final_length();
    r.pages = PagesFor(r.length);
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(PositionOf(slot)));
    Finish(slot, effects);
  }
}

std::uint64_t SglangCore::SteadyPasses(std::uint64_t /*pass*/, std::uint64_t limit) {
  if (!calendar_ || running_.empty() || !tokenless_.empty() || doomed_count_ > 0 || decode_first_) {
    return 0;
  }
  if (!prebuilt_.empty() && running_.size() < max_num_seqs_) {
    return 0;
  }
  limit = std::min(limit, ends_.front().pass - decode_);
  limit = PassesThatFit(limit, cache_.available());
  return waiting_.empty() || limit == 0 ? limit : PassesWithoutAdmission(limit);
}

std::uint64_t SglangCore::PassesWithoutAdmission(std::uint64_t limit) {
  if (OrdersQueue()) {
    if (!OrderIsCurrent()) {
      return 0;
    }
    limit = PassesThatFit(limit, cache_.free());
  }
  const bool paused = !prebuilt_.empty() || !pending_.empty() || rounds_left_ >= limit;
  if (paused || running_.size() >= max_num_seqs_) {
    return limit;
  }
  RequestState& r = slots_[waiting_.front()];
  const Plan plan = PlanChunk(r, max_prefill_tokens_, chunk_tokens_);
  if (prefix_caching_ && r.materialized == 0 && head_.match.pages > 0 &&
      !cache_.Locked(head_.match.node)) {
    // What the head can reuse must not be evicted on the way.
    limit = PassesThatFit(limit, cache_.free() + cache_.PagesBeforeWatched());
  }
  return plan.possible ? PassesWithBlockedHead(limit, plan) : limit;
}

std::uint64_t SglangCore::PassesWithBlockedHead(std::uint64_t limit, const Plan& plan) const {
  std::uint64_t reserved = 0;
  std::uint64_t shrinking = 0;
  for (const Running& entry : running_) {
    const std::uint64_t remaining = RemainingAt(entry);
    if (remaining > clip_tokens_) {
      reserved += clip_tokens_;
      limit = std::min(limit, remaining - clip_tokens_ + 1);
    } else {
      reserved += remaining;
      ++shrinking;
    }
  }
  const auto cost = static_cast<double>(plan.need + plan.output);
  std::uint64_t available = cache_.available();
  double ratio = ratio_;
  for (std::uint64_t i = 0; i < limit; ++i) {
    const double left =
        static_cast<double>(available * page_size_) - static_cast<double>(reserved) * ratio;
    if (i >= rounds_left_ && cost < left + kReserveMargin) {
      return i;
    }
    available -= page_size_ == 1 ? running_.size() : growers_[(decode_ + 1 + i) % page_size_];
    reserved -= shrinking;
    ratio = std::max(ratio - ratio_step_, lowest_ratio_);
  }
  return limit;
}

void SglangCore::SteadyDurationsMs(std::uint64_t /*pass*/, std::span<double> out) const {
  timer_.DecodeRunMs({.requests = running_.size(),
                      .context_tokens = Plus(running_.size() * decode_, base_sum_),
                      .capacity_tokens = cache_.capacity() * page_size_},
                     out);
}

std::uint64_t SglangCore::SteadyRemovalPass(std::uint64_t through) const {
  if (running_.empty() || through <= pass_) {
    return through + 1;
  }
  return pass_ + PassesThatFit(through - pass_, cache_.free()) + 1;
}

void SglangCore::AdvanceSteady(std::uint64_t pass, PassEffects& effects) {
  if (running_.empty()) {
    return;  // work that came while the other ranks were at it
  }
  const std::uint64_t passes = pass - pass_;
  effects.decode_forwards += running_.size() * passes;
  effects.decode_tokens += running_.size() * passes;
  effects.had_effect = effects.had_effect || passes > 0;
  effects.ran = true;
  AdvanceTokens(passes, pass_ + 1);
  pass_ = pass;
  DecayRatio(passes);
  FinishDue(effects);
}

std::uint64_t SglangCore::OldestLivePass() const {
  std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint32_t slot : waiting_) {
    const auto& spans = slots_[slot].track.spans;
    oldest = spans.empty() ? oldest : std::min(oldest, spans.front().first);
  }
  for (const Running& entry : running_) {
    const RequestState& r = slots_[entry.slot];
    if (!r.track.spans.empty()) {
      oldest = std::min(oldest, r.track.spans.front().first);
    } else if (calendar_ && r.since < decode_) {
      oldest = std::min(oldest, FirstPassOf(r));
    }
  }
  return oldest;
}

// The worker pass of the first decode pass that the track does not have yet.
std::uint64_t SglangCore::FirstPassOf(const RequestState& r) const {
  std::size_t i = r.segment > segments_dropped_ ? r.segment - segments_dropped_ - 1 : 0;
  while (i + 1 < segments_.size() && segments_[i + 1].decode <= r.since + 1) {
    ++i;
  }
  return segments_[i].pass + r.since + 1 - segments_[i].decode;
}

std::uint64_t SglangCore::PagesOutsideTree() const {
  std::uint64_t pages = 0;
  const auto add = [&](const RequestState& r) { pages += r.pages - r.cached_pages; };
  for (const Running& entry : running_) {
    const RequestState& r = slots_[entry.slot];
    if (calendar_) {
      pages += PagesFor(Plus(decode_, r.base)) - r.cached_pages;
    } else {
      add(r);
    }
  }
  for (const auto* list : {&waiting_, &prebuilt_}) {
    for (const std::uint32_t slot : *list) {
      add(slots_[slot]);
    }
  }
  for (const std::uint32_t slot : tokenless_) {
    add(slots_[slot]);
  }
  return pages;
}

}  // namespace dynosim::engine::sglang
