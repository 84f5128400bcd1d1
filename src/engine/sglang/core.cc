// SPDX-License-Identifier: Apache-2.0
// One pass (chapter 20, sections 6 to 9): a prefill batch if one can be formed, else a decode step.
#include "engine/sglang/core.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/check.h"
#include "engine/core.h"
#include "engine/effects.h"
#include "engine/settings.h"
#include "engine/sglang/request_state.h"
#include "engine/speculative.h"
#include "kv/radix_cache.h"
#include "timing/model.h"

namespace dynosim::engine::sglang {

namespace {

// Page growth is counted per token position in a page; larger pages go pass by pass.
constexpr std::uint64_t kLargestCalendarPage = 1U << 16U;

// The start ratio of a rank: data parallelism makes the engine bolder.
double InitialRatio(const EngineSettings& settings) {
  double conservativeness = settings.sglang.schedule_conservativeness;
  if (settings.dp_size > 1) {
    conservativeness *= 0.3;
  }
  return 0.7 * conservativeness;
}

}  // namespace

SglangCore::SglangCore(const EngineSettings& settings, const CoreOptions& options)
    : page_size_(settings.block_size),
      max_num_seqs_(settings.max_num_seqs),
      max_model_len_(settings.max_model_len.value_or(kUnlimited)),
      max_prefill_tokens_(settings.sglang.max_prefill_tokens),
      chunk_tokens_(settings.sglang.chunked_prefill_size / settings.dp_size),
      clip_tokens_(settings.sglang.clip_max_new_tokens),
      interval_(settings.prefill_decode_interval),
      prefix_caching_(settings.enable_prefix_caching),
      longest_prefix_first_(settings.sglang.schedule_policy == SglangPolicy::kLpm &&
                            settings.enable_prefix_caching),
      speculative_tokens_(
          settings.worker_role == WorkerRole::kPrefill ? 0 : settings.speculative_tokens),
      initial_ratio_(InitialRatio(settings)),
      lowest_ratio_(initial_ratio_ * 0.14),
      ratio_step_((initial_ratio_ - lowest_ratio_) / 600),
      role_(settings.worker_role),
      options_(options),
      calendar_allowed_(options.fast_path && !options.capture_metrics && !options.capture_tokens &&
                        speculative_tokens_ == 0 && settings.block_size <= kLargestCalendarPage),
      timer_(settings.timing, settings.speedup_ratio, settings.decode_speedup_ratio),
      cache_(settings.num_gpu_blocks),
      events_(settings.enable_prefix_caching ? options.events : nullptr),  // nothing to find
      ratio_(initial_ratio_),
      calendar_(calendar_allowed_),
      prune_at_(kFirstPrune) {
  cache_.set_growing(this);
  cache_.set_evicted(events_.evicted());
  if (calendar_allowed_) {
    growers_.assign(page_size_, 0);
  }
  if (speculative_tokens_ > 0) {
    const std::uint64_t scheduler = std::uint64_t{options.worker} * settings.dp_size + options.rank;
    sampler_ = std::make_unique<BurstSampler>(settings.speculative_seed + scheduler,
                                              settings.accept_rates);
  }
}

double SglangCore::RunPass(double now_ms, std::uint64_t pass, bool /*may_defer*/,
                           PassEffects& effects) {
  pass_ = pass;
  effects_ = &effects;
  counting_ = rounds_left_ > 0;
  effect_ = stuck_ = false;
  new_ratio_.reset();
  events_.BeginPass(pass);
  const double ratio_before = ratio_;
  RejectDoomed();
  PromotePrebuilt(effects);
  decode_first_ = decode_first_ && !running_.empty();
  OrderQueue();
  FormBatch(effects);
  ran_ = !batch_.empty() || !running_.empty() || !tokenless_.empty();
  if (options_.capture_metrics) {
    metrics_ = {};
  }
  const double end_ms = batch_.empty() ? RunDecode(now_ms, effects) : RunPrefill(now_ms, effects);
  if (new_ratio_) {
    ratio_ = *new_ratio_;
  } else if (batch_.empty() && (ran_ || !counting_)) {
    DecayRatio(1);
  }
  decode_first_ = false;
  const bool retry = SettlePass(now_ms, end_ms, ratio_before, effects);
  SignalRejections(effects);
  effects.had_effect = effect_ || retry;
  effects.ran = ran_;
  if (options_.capture_metrics) {
    FillQueueMetrics();
  }
  if (!calendar_ && calendar_allowed_) {
    TurnCalendarOn();
  }
  return end_ms;
}

// What a pass without effect means. True if the next one at the same time may differ.
bool SglangCore::SettlePass(double now_ms, double end_ms, double ratio_before,
                            PassEffects& effects) {
  if (end_ms != now_ms || effect_ || effects.failed) {
    return false;
  }
  if (counting_) {
    return true;
  }
  if (role_ == WorkerRole::kDecode) {
    stuck_ = ratio_ == ratio_before;
    return !stuck_;
  }
  if (held_count_ == 0) {
    Unstick();
  }
  return false;
}

double SglangCore::PrefillMs() const {
  if (role_ == WorkerRole::kDecode) {
    return 0.0;
  }
  std::uint64_t total = 0;
  std::uint64_t prefix = 0;
  for (const Chunk& chunk : batch_) {
    total += chunk.start + chunk.tokens;
    prefix += chunk.start;
  }
  const std::uint64_t mean_total = total / batch_.size();
  const std::uint64_t mean_prefix = prefix / batch_.size();
  return timer_.PrefillMs({.requests = batch_.size(),
                           .mean_new = mean_total - mean_prefix,
                           .mean_prefix = mean_prefix});
}

double SglangCore::RunPrefill(double now_ms, PassEffects& effects) {
  const double prefill_ms = PrefillMs();
  if (!std::isfinite(prefill_ms)) {
    effects.failed = true;
    return now_ms;
  }
  if (options_.capture_metrics) {
    FillMetrics();
  }
  effect_ = true;
  first_.clear();
  ended_.clear();
  for (const Chunk& chunk : batch_) {
    RequestState& r = slots_[chunk.slot];
    computed_tokens_ += chunk.tokens;
    effects.committed_prefill_tokens += chunk.tokens;
    if (r.materialized < r.length) {
      CacheRunning(r, NextStamp());
      waiting_.push_front(chunk.slot);
    } else if (r.remaining() == 0) {
      ended_.push_back(chunk.slot);
    } else if (r.remaining() > 1) {
      first_.push_back(chunk.slot);
    }
  }
  for (const Chunk& chunk : batch_) {
    RequestState& r = slots_[chunk.slot];
    if (r.materialized == r.length && r.remaining() == 1) {
      // The last token needs no KV.
      ++r.length;
      AddToken(r, 1);
      ended_.push_back(chunk.slot);
    }
  }
  batch_ids_.clear();
  for (const Chunk& chunk : batch_) {
    batch_ids_.push_back(slots_[chunk.slot].id);
  }
  const std::size_t before = effects.signals.size();
  GiveFirstTokens(effects);
  for (const std::uint32_t slot : ended_) {
    if (role_ == WorkerRole::kPrefill) {
      Hold(slot, effects);
    } else {
      Finish(slot, effects);
    }
  }
  // Memory changes hands in the order above; a router hears of the requests in that of the batch
  // (chapter 70, section 2).
  const auto place = [&](const Signal& signal) {
    return std::ranges::find(batch_ids_, signal.request) - batch_ids_.begin();
  };
  std::ranges::sort(std::span(effects.signals).subspan(before), {}, place);
  return now_ms + prefill_ms;
}

// All of them, or none when the pages for the tokens cannot be had.
void SglangCore::GiveFirstTokens(PassEffects& effects) {
  std::uint64_t growth = 0;
  for (const std::uint32_t slot : first_) {
    growth += PagesFor(slots_[slot].length + 1) - slots_[slot].pages;
  }
  const bool fits = growth <= cache_.available();
  if (fits) {
    TakePages(growth);
  }
  for (const std::uint32_t slot : first_) {
    RequestState& r = slots_[slot];
    if (fits) {
      const bool first = r.generated() == 0;
      r.pages = PagesFor(r.length + 1);
      ++r.length;
      ++r.materialized;
      AddToken(r, 1);
      CacheRunning(r, NextStamp());
      if (first) {
        effects.signals.push_back({.kind = Signal::Kind::kFirstToken, .request = r.id, .index = 0});
      }
    }
    JoinRunning(slot);
  }
}

double SglangCore::RunDecode(double now_ms, PassEffects& effects) {
  double end_ms = now_ms;
  ended_.clear();
  if (!running_.empty() && calendar_ && GrowthPages(1) <= cache_.available()) {
    double duration_ms = 0.0;
    SteadyDurationsMs(pass_, {&duration_ms, 1});
    if (!std::isfinite(duration_ms)) {
      effects.failed = true;
      return now_ms;
    }
    effect_ = true;
    effects.decode_forwards += running_.size();
    effects.decode_tokens += running_.size();
    AdvanceTokens(1, pass_);
    end_ms = now_ms + duration_ms;
  } else if (!running_.empty()) {
    TurnCalendarOff();
    end_ms = DecodePlainly(now_ms, effects);
  }
  for (const std::uint32_t slot : tokenless_) {
    Finish(slot, effects);
  }
  tokenless_.clear();
  if (calendar_) {
    FinishDue(effects);
    return end_ms;
  }
  for (const std::uint32_t slot : ended_) {
    Finish(slot, effects);
  }
  for (const std::uint32_t slot : retracted_) {
    waiting_.push_back(slot);
    order_changed_ = true;
  }
  retracted_.clear();
  return end_ms;
}

std::uint64_t SglangCore::GrowthOf(const RequestState& r) const {
  const std::uint64_t burst = std::min(speculative_tokens_ + 1, r.remaining());
  return PagesFor(r.length + burst) - r.pages;
}

double SglangCore::DecodePlainly(double now_ms, PassEffects& effects) {
  std::uint64_t growth = 0;
  for (const Running& entry : running_) {
    growth += GrowthOf(slots_[entry.slot]);
  }
  RetractFor(growth, effects);
  growth = 0;
  std::uint64_t context = 0;
  for (const Running& entry : running_) {
    growth += GrowthOf(slots_[entry.slot]);
    context += slots_[entry.slot].length;
  }
  const double decode_ms = timer_.DecodeMs({.requests = running_.size(),
                                            .context_tokens = context,
                                            .capacity_tokens = cache_.capacity() * page_size_});
  if (!std::isfinite(decode_ms)) {
    effects.failed = true;
    return now_ms;
  }
  if (growth > cache_.available()) {
    return now_ms;
  }
  if (options_.capture_metrics) {
    FillMetrics();
  }
  TakePages(growth);
  NoteDecodePass(decode_ + 1, pass_);
  ++decode_;
  effect_ = true;
  EmitPlainly(effects);
  return now_ms + decode_ms;
}

// The pages for the longest bursts have been taken; what is not used goes back.
void SglangCore::EmitPlainly(PassEffects& effects) {
  std::size_t kept = 0;
  for (const Running& entry : running_) {
    RequestState& r = slots_[entry.slot];
    const std::uint64_t drawn = sampler_ != nullptr ? sampler_->Sample() : 1;
    const std::uint64_t burst = std::min(drawn, r.remaining());
    const std::uint64_t taken = r.pages + GrowthOf(r);
    const bool first = r.generated() == 0;
    r.length += burst;
    r.materialized += burst;
    r.pages = PagesFor(r.length);
    cache_.Return(taken - r.pages);
    AddToken(r, burst);
    ++effects.decode_forwards;
    effects.decode_tokens += burst;
    if (r.remaining() > 0) {
      CacheRunning(r, DecodeStamp(decode_, r));
      if (first) {
        effects.signals.push_back({.kind = Signal::Kind::kFirstToken, .request = r.id, .index = 0});
      }
      running_[kept++] = entry;
      continue;
    }
    if (burst > 1) {
      // All tokens but the last are cached in running order.
      --r.materialized;
      CacheRunning(r, DecodeStamp(decode_, r));
      ++r.materialized;
    }
    ended_.push_back(entry.slot);
  }
  running_.resize(kept);
}

// Sends requests back to the queue until the others can grow; the last one always stays.
void SglangCore::RetractFor(std::uint64_t growth, PassEffects& effects) {
  while (growth > cache_.available() && running_.size() > 1) {
    const auto victim = std::ranges::min_element(
        running_, {}, [&](const Running& e) { return slots_[e.slot].generated(); });
    RequestState& r = slots_[victim->slot];
    growth -= GrowthOf(r);
    PressureEvent event = {.request = r.id,
                           .running_before = running_.size(),
                           .running_after = running_.size() - 1,
                           .waiting_before = waiting_.size() + retracted_.size(),
                           .waiting_after = waiting_.size() + retracted_.size() + 1,
                           .active_blocks_before = cache_.capacity() - cache_.free(),
                           .victim_blocks = r.pages};
    GiveBack(r);
    r.state = State::kWaiting;
    retracted_.push_back(victim->slot);
    running_.erase(victim);
    if (options_.capture_pressure) {
      event.active_blocks_after = cache_.capacity() - cache_.free();
      effects.pressure.push_back(event);
    }
  }
  if (retracted_.empty()) {
    return;
  }
  retractions_ += retracted_.size();
  ++generation_;
  effect_ = true;
  std::uint64_t generated = 0;
  std::uint64_t outputs = 0;
  for (const Running& entry : running_) {
    generated += slots_[entry.slot].generated();
    outputs += slots_[entry.slot].output;
  }
  new_ratio_ = std::min(1.0, static_cast<double>(generated + 20 * running_.size()) /
                                 static_cast<double>(outputs + 1));
}

// The request keeps its tokens and loses its KV; what the tree has of it can be evicted.
void SglangCore::GiveBack(RequestState& r) {
  events_.Drop(r, r.cached_pages, r.announced_pages);
  events_.Flush();
  cache_.Return(r.pages - r.cached_pages);
  cache_.Unlock(r.node);
  r.node = kv::RadixCache::kRoot;
  r.pages = r.cached_pages = r.announced_pages = r.materialized = 0;
}

// Puts the complete pages of a request into the tree (section 6.1).
void SglangCore::CacheRunning(RequestState& r, kv::Stamp stamp) {
  const std::uint64_t whole = WholePages(r.materialized);
  if (!prefix_caching_ || whole <= r.cached_pages) {
    return;
  }
  events_.Store(r, whole);
  const kv::RadixCache::Inserted inserted =
      cache_.Extend(r.node, r.names, r.cached_pages, whole, stamp);
  cache_.Return(inserted.existing);
  events_.Drop(r, r.cached_pages, r.cached_pages + inserted.existing);
  events_.Flush();
  r.node = inserted.node;
  r.cached_pages = whole;
}

// Gives everything back, complete pages to the tree (section 6.2).
void SglangCore::Release(RequestState& r) {
  if (!prefix_caching_) {
    GiveBack(r);
    return;
  }
  const std::uint64_t whole = WholePages(std::min(r.length, r.materialized));
  cache_.Return(r.pages - whole);
  events_.Drop(r, whole, r.announced_pages);
  events_.Store(r, whole);
  const kv::RadixCache::Inserted inserted =
      cache_.Finish(r.node, r.names, r.cached_pages, whole, NextStamp());
  cache_.Return(inserted.existing);
  events_.Drop(r, r.cached_pages, r.cached_pages + inserted.existing);
  events_.Flush();
  r.node = kv::RadixCache::kRoot;
  r.pages = r.cached_pages = r.announced_pages = r.materialized = 0;
}

// The request has all its tokens and is in no list any more.
void SglangCore::Finish(std::uint32_t slot, PassEffects& effects) {
  RequestState& r = slots_[slot];
  r.track.tokens = r.generated();
  effects.signals.push_back({.kind = Signal::Kind::kFinished,
                             .request = r.id,
                             .index = static_cast<std::uint32_t>(effects.finished.size())});
  effects.finished.push_back(std::move(r.track));
  r.track = {};
  Release(r);
  Forget(r);
  free_slots_.push_back(slot);
  effect_ = true;
  ++generation_;
}

void SglangCore::AddToken(RequestState& r, std::uint64_t burst) {
  auto& spans = r.track.spans;
  if (spans.empty()) {
    r.track.first_burst = burst;
  }
  if (!spans.empty() && spans.back().last + 1 == pass_) {
    spans.back().last = pass_;
  } else {
    spans.push_back({pass_, pass_});
  }
  if (options_.capture_tokens) {
    effects_->gains.push_back({.request = r.id, .tokens = static_cast<std::uint32_t>(burst)});
  }
}

void SglangCore::TakePages(std::uint64_t pages) {
  cache_.Take(pages);
  events_.Flush();
}

// Step by step, as the sum is rounded.
void SglangCore::DecayRatio(std::uint64_t passes) {
  for (; passes > 0 && ratio_ > lowest_ratio_; --passes) {
    ratio_ = std::max(ratio_ - ratio_step_, lowest_ratio_);
  }
  ratio_ = std::max(ratio_, lowest_ratio_);
}

void SglangCore::EndWorkerPasses(const WorkerPasses& passes) {
  if (passes.any_prefill) {
    rounds_left_ = interval_;
    return;
  }
  if (rounds_left_ == 0) {
    return;
  }
  rounds_left_ -= std::min(rounds_left_, passes.count);
  if (!passes.any_work) {
    ratio_ = initial_ratio_;
    // The remaining rounds would pass at the same time without doing anything. On a decode rank
    // each of them ends with an attempt to reserve.
    if (role_ != WorkerRole::kDecode) {
      rounds_left_ = 0;
    }
  }
}

}  // namespace dynosim::engine::sglang
