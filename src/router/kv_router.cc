// SPDX-License-Identifier: Apache-2.0
#include "router/kv_router.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "kv/events.h"
#include "router/config.h"
#include "router/load_tracker.h"
#include "router/policy_profile.h"
#include "router/policy_queue.h"
#include "router/presence_index.h"
#include "router/router.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::router {

namespace {

double AsDouble(std::uint64_t value) { return static_cast<double>(value); }

}  // namespace

KvRouter::KvRouter(const PoolShape& shape, const KvRouterOptions& options)
    : shape_(shape),
      config_(options.config),
      profile_(options.profile
                   ? *options.profile
                   : SingleClass(options.config.queue_policy, options.config.queue_threshold)),
      capture_candidates_(options.capture_candidates),
      caches_(options.caches),
      random_(options.seed),
      index_(shape.targets()),
      ttl_(index_, options.ttl),
      lru_(index_, shape.targets(), options.lru_blocks),
      predicted_index_(shape.targets()),
      predicted_(predicted_index_, {.ttl_ms = options.predicted_ttl_ms.value_or(0.0)}),
      predicts_(options.predicted_ttl_ms.has_value() && caches_ == CacheSource::kEvents),
      load_(shape.targets(),
            {.blocks = config_.track_active_blocks,
             .share_blocks = config_.assume_kv_reuse,
             .prefill_tokens = config_.track_prefill_tokens,
             .predicted = config_.track_prefill_tokens && options.prefill_ns != nullptr}),
      prefill_ns_(options.prefill_ns),
      queue_(profile_, shape.targets()),
      overlap_(shape.targets(), 0),
      tracked_(shape.targets(), 0),
      costs_(shape.targets(), 0.0) {}

TrackedRequest& KvRouter::placed(std::uint32_t request) {
  TrackedRequest* const tracked = placed_.Find(request & shape_.id_mask);
  DYNO_CHECK(tracked != nullptr);
  return *tracked;
}

KvRouter::Waiting KvRouter::Take(const Arrival& arrival, double now_ms) {
  Waiting w;
  w.request = arrival.request;
  w.forced = arrival.forced;
  w.tracked.full_blocks = arrival.request.prompt_tokens / shape_.block_size;
  if (caches_ == CacheSource::kNone && !(config_.track_active_blocks && config_.assume_kv_reuse)) {
    return w;
  }
  if (!spare_.empty()) {
    w.tracked.extents = std::move(spare_.back());
    spare_.pop_back();
  }
  arrival.source.Blocks(arrival.request.id, shape_.block_size, w.tracked.extents);
  if (caches_ != CacheSource::kNone) {
    ttl_.Expire(now_ms);
    index_.Match(w.tracked.extents, w.tracked.full_blocks, w.overlaps);
    if (predicts_) {
      AddPredicted(w, now_ms);
    }
    for (const PrefixMatch& match : w.overlaps) {
      w.best_overlap = std::max(w.best_overlap, match.blocks);
    }
  }
  return w;
}

// A target's overlap is the greater of what events say and what placements promise.
void KvRouter::AddPredicted(Waiting& w, double now_ms) {
  predicted_.Expire(now_ms);
  predicted_index_.Match(w.tracked.extents, w.tracked.full_blocks, matches_);
  for (const PrefixMatch& match : matches_) {
    const auto known = std::ranges::find(w.overlaps, match.target, &PrefixMatch::target);
    if (known == w.overlaps.end()) {
      w.overlaps.push_back(match);
    } else {
      known->blocks = std::max(known->blocks, match.blocks);
    }
  }
}

Result<void> KvRouter::Place(const Arrival& arrival, double now_ms, std::vector<Decision>& out) {
  Waiting w = Take(arrival, now_ms);
  const workload::Request& request = arrival.request;
  const std::uint64_t cached = std::min(request.prompt_tokens, w.best_overlap * shape_.block_size);
  const std::size_t number =
      profile_.ClassOf(request.policy_class == workload::kNone
                           ? std::string_view()
                           : arrival.source.PolicyClassName(request.policy_class),
                       request.prompt_tokens - cached);
  if (!profile_.classes[number].CanQueue() || (queue_.Empty(number) && !AllBusy(number, now_ms))) {
    out.push_back(Admit(w, now_ms));
    return {};
  }
  if (const auto why = queue_.LimitReached(number)) {
    return FailedError("placement policy error", *why);
  }
  w.queued_at_ms = now_ms;
  queue_.Push(number, {.request = request.id,
                       .strict_priority = request.strict_priority,
                       .priority = request.priority,
                       .prompt_tokens = request.prompt_tokens,
                       .cached_tokens = cached,
                       .arrival_ms = now_ms});
  waiting_[request.id] = std::move(w);
  return {};
}

bool KvRouter::AllBusy(std::size_t number, double now_ms) const {
  const ClassRules& rules = profile_.classes[number];
  const std::uint64_t least = load_.LeastPrefillTokens(now_ms);
  return (rules.busy_tokens && least > *rules.busy_tokens) ||
         (rules.busy_fraction &&
          AsDouble(least) > *rules.busy_fraction * AsDouble(shape_.max_batched_tokens));
}

void KvRouter::Evaluate(const Waiting& waiting, double now_ms, std::vector<Candidate>& terms) {
  for (const PrefixMatch& match : waiting.overlaps) {
    overlap_[match.target] = match.blocks;
  }
  load_.MatchTracked(waiting.tracked, matches_);
  for (const PrefixMatch& match : matches_) {
    tracked_[match.target] = match.blocks;
  }
  const std::uint64_t prompt = waiting.request.prompt_tokens;
  const std::uint64_t blocks = config_.track_active_blocks ? waiting.tracked.full_blocks : 0;
  const double size = AsDouble(shape_.block_size);
  const double request_blocks =
      AsDouble(prompt / shape_.block_size + (prompt % shape_.block_size != 0 ? 1 : 0));
  const bool decays = config_.track_prefill_tokens && config_.overlap_score_credit_decay > 0.0;
  const std::uint64_t least = decays ? load_.LeastPrefillTokens(now_ms) : 0;
  for (std::uint32_t t = 0; t < shape_.targets(); ++t) {
    const std::uint64_t active = load_.prefill_tokens(t, now_ms);
    // The prompt counts whole: what is cached comes off as credit.
    const double raw_blocks = config_.track_prefill_tokens ? AsDouble(active + prompt) / size : 0.0;
    double credit = config_.overlap_score_credit;
    if (decays) {
      const double ahead = AsDouble(active - least) / size;
      credit *= 1.0 / (1.0 + config_.overlap_score_credit_decay * ahead / request_blocks);
    }
    credit *= overlap_[t];
    const double prefill_cost = config_.prefill_load_scale * std::max(raw_blocks - credit, 0.0);
    const double decode_cost = AsDouble(load_.blocks(t) + blocks - tracked_[t]);
    const double request_cost = config_.decode_active_request_weight * AsDouble(load_.requests(t));
    costs_[t] = prefill_cost + decode_cost + request_cost;
    if (capture_candidates_) {
      terms.push_back({.target = shape_.TargetOf(t),
                       .overlap_blocks = overlap_[t],
                       .active_prefill_tokens = active,
                       .active_blocks = load_.blocks(t),
                       .additional_blocks = blocks - tracked_[t],
                       .active_requests = load_.requests(t),
                       .overlap_credit = credit,
                       .prefill_cost = prefill_cost,
                       .decode_cost = decode_cost,
                       .request_cost = request_cost,
                       .cost = costs_[t]});
    }
  }
  for (const PrefixMatch& match : matches_) {
    tracked_[match.target] = 0;
  }
}

std::uint32_t KvRouter::Choose() {
  if (config_.temperature > 0.0) {
    return Sample();
  }
  least_.clear();
  double least = costs_[0];
  for (std::uint32_t t = 0; t < shape_.targets(); ++t) {
    if (costs_[t] < least) {
      least = costs_[t];
      least_.clear();
    }
    if (costs_[t] == least) {
      least_.push_back(t);
    }
  }
  if (least_.size() == 1) {
    return least_.front();
  }
  return least_[random_.NextBelow(static_cast<std::uint32_t>(least_.size()))];
}

// Softmax of the costs, normalised to [0, 1] by their range. One draw.
std::uint32_t KvRouter::Sample() {
  const auto [low, high] = std::ranges::minmax_element(costs_);
  const double least = *low;
  const double range = (*high - least) * config_.temperature;
  const double draw = random_.NextUniform();
  if (!(range > 0.0)) {
    return std::min(static_cast<std::uint32_t>(draw * shape_.targets()), shape_.targets() - 1);
  }
  double sum = 0.0;
  for (const double cost : costs_) {
    sum += std::exp(-(cost - least) / range);
  }
  double reached = 0.0;
  for (std::uint32_t t = 0; t < shape_.targets(); ++t) {
    reached += std::exp(-(costs_[t] - least) / range) / sum;
    if (reached > draw) {
      return t;
    }
  }
  return static_cast<std::uint32_t>(low - costs_.begin());
}

bool KvRouter::IsPossible(std::uint32_t target) const {
  return config_.temperature > 0.0 || costs_[target] == *std::ranges::min_element(costs_);
}

Decision KvRouter::Admit(Waiting& w, double now_ms) {
  Decision decision{.request = w.request, .queued_at_ms = w.queued_at_ms};
  Evaluate(w, now_ms, decision.candidates);
  std::uint32_t target = 0;
  if (w.forced) {
    target = shape_.NumberOf(*w.forced);
    decision.possible = IsPossible(target);
  } else {
    target = Choose();
  }
  decision.target = shape_.TargetOf(target);
  decision.overlap = OverlapReport{.selected = overlap_[target], .best_available = w.best_overlap};
  const std::uint64_t cached =
      std::min(overlap_[target] * shape_.block_size, w.request.prompt_tokens);
  for (const PrefixMatch& match : w.overlaps) {
    overlap_[match.target] = 0;
  }
  TrackedRequest& tracked = placed_[w.request.id & shape_.id_mask];
  tracked = std::move(w.tracked);
  const std::uint64_t tokens = w.request.prompt_tokens - cached;
  load_.Add(tracked, target, tokens, now_ms,
            load_.rules().predicted && tokens > 0 ? prefill_ns_(tokens, cached) : std::nullopt);
  if (caches_ == CacheSource::kTtl) {
    ttl_.OnPlaced(target, tracked.extents, tracked.full_blocks, now_ms);
  } else if (caches_ == CacheSource::kLru) {
    lru_.OnPlaced(target, tracked.extents, tracked.full_blocks);
  } else if (predicts_) {
    predicted_.OnPlaced(target, tracked.extents, tracked.full_blocks, now_ms);
  }
  return decision;
}

void KvRouter::PrefillDone(std::uint32_t request, double now_ms, std::vector<Decision>& out) {
  load_.DropPrefill(placed(request), now_ms);
  Drain(now_ms, out);
}

void KvRouter::Terminal(std::uint32_t request, double now_ms, std::vector<Decision>& out) {
  TrackedRequest& tracked = placed(request);
  if (caches_ == CacheSource::kLru) {
    lru_.OnReleased(tracked.target, tracked.extents, tracked.full_blocks);
  }
  load_.Remove(tracked, now_ms);
  if (tracked.extents.capacity() > 0) {
    spare_.push_back(std::move(tracked.extents));
  }
  placed_.Erase(request & shape_.id_mask);
  Drain(now_ms, out);
}

void KvRouter::AppendHeldGroups(std::vector<std::uint32_t>& groups) const {
  ttl_.AppendHeldGroups(groups);
  lru_.AppendHeldGroups(groups);
}

void KvRouter::Drain(double now_ms, std::vector<Decision>& out) {
  while (queue_.size() > 0) {
    const auto request = queue_.Pop([&](std::size_t number) { return !AllBusy(number, now_ms); });
    if (!request) {
      return;
    }
    Waiting w = std::move(*waiting_.Find(*request));
    waiting_.Erase(*request);
    out.push_back(Admit(w, now_ms));
  }
}

bool KvRouter::CancelPending(std::uint32_t request) {
  if (!queue_.Cancel(request)) {
    return false;
  }
  waiting_.Erase(request);
  return true;
}

void KvRouter::OnStored(std::uint32_t target, std::span<const kv::BlockName> blocks) {
  for (const kv::BlockName name : blocks) {
    index_.Add(target, name);
  }
}

void KvRouter::OnRemoved(std::uint32_t target, std::span<const kv::BlockName> blocks) {
  for (const kv::BlockName name : blocks) {
    const bool held = index_.Remove(target, name);
    DYNO_CHECK(held);
  }
}

}  // namespace dynosim::router
