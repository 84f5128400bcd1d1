// SPDX-License-Identifier: Apache-2.0
// One forward pass (chapter 10, sections 3 and 4): running requests, waiting requests, time,
// tokens.
#include "engine/vllm/core.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "base/check.h"
#include "engine/core.h"
#include "engine/effects.h"
#include "engine/settings.h"
#include "engine/speculative.h"
#include "engine/vllm/request_state.h"
#include "timing/model.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::engine::vllm {

namespace {

// Passes that preempt, per request of the rank, without a token in between, after which the
// requests are served one at a time.
constexpr std::uint64_t kFruitlessPassesPerRequest = 64;

// Steady requests need a due list per token position in a block; larger blocks go pass by pass.
constexpr std::uint64_t kLargestCalendarBlock = 1U << 16U;

std::uint64_t SaturatingAdd(std::uint64_t a, std::uint64_t b) {
  return a > kUnlimited - b ? kUnlimited : a + b;
}

}  // namespace

VllmCore::VllmCore(const EngineSettings& settings, const CoreOptions& options)
    : reserve_to_completion_(settings.backend == Backend::kTrtllm),
      block_size_(settings.block_size),
      max_batched_tokens_(settings.max_num_batched_tokens),
      max_num_seqs_(settings.max_num_seqs),
      max_model_len_(settings.max_model_len.value_or(kUnlimited)),
      prefix_caching_(settings.enable_prefix_caching),
      chunked_prefill_(settings.enable_chunked_prefill),
      fifo_preemption_(settings.preemption_mode == PreemptionMode::kFifo),
      speculative_tokens_(settings.speculative_tokens),
      defer_interval_(settings.prefill_schedule_interval),
      role_(settings.worker_role),
      options_(options),
      calendar_allowed_(options.fast_path && !options.capture_metrics && !options.capture_tokens &&
                        settings.speculative_tokens == 0 &&
                        settings.block_size <= kLargestCalendarBlock),
      timer_(settings.timing, settings.speedup_ratio, settings.decode_speedup_ratio),
      pool_(settings.num_gpu_blocks) {
  pool_.set_sink(options.events);
  if (calendar_allowed_) {
    due_heads_.assign(block_size_, kNoSlot);
    due_counts_.assign(block_size_, 0);
  }
  if (speculative_tokens_ > 0) {
    const std::uint64_t scheduler = std::uint64_t{options.worker} * settings.dp_size + options.rank;
    sampler_ = std::make_unique<BurstSampler>(settings.speculative_seed + scheduler,
                                              settings.accept_rates);
  }
}

void VllmCore::Submit(const workload::Request& request, const workload::RequestSource& source) {
  const std::uint32_t slot = NewSlot();
  Load(slots_[slot], request, source);
  if (role_ == WorkerRole::kPrefill) {
    *handoffs_.TryInsert(request.id, slot).first = slot;
  }
  if (waiting_.empty()) {
    head_blocked_ = false;
  }
  waiting_.push_back(slot);
}

void VllmCore::Load(RequestState& r, const workload::Request& request,
                    const workload::RequestSource& source) {
  r.id = request.id;
  r.status = Status::kWaiting;
  r.prompt = request.prompt_tokens;
  r.output = request.output_tokens;
  if (reserve_to_completion_) {
    // The reservation covers the whole output, so it is cut to what can ever fit.
    if (max_model_len_ != kUnlimited) {
      r.output = std::min(r.output, max_model_len_ > r.prompt ? max_model_len_ - r.prompt : 0);
    }
    const std::uint64_t pool_tokens = pool_.capacity() * block_size_;
    if (r.prompt < pool_tokens) {
      r.output = std::min(r.output, pool_tokens - r.prompt);
    }
  }
  r.final_length = std::max(r.prompt, std::min(SaturatingAdd(r.prompt, r.output), max_model_len_));
  r.length = r.prompt;
  r.hashed_blocks = r.prompt / block_size_;
  source.Blocks(request.id, block_size_, r.names.extents());
  r.names.Rewind();
  shares_generated_ = shares_generated_ || source.SharesGeneratedBlocks();
}

double VllmCore::RunPass(double now_ms, std::uint64_t pass, bool may_defer, PassEffects& effects) {
  pass_ = pass;
  effects_ = &effects;
  budget_ = max_batched_tokens_;
  batch_count_ = batch_total_ = batch_prefix_ = committed_ = 0;
  preempted_any_ = effect_ = head_blocked_ = false;
  pure_steady_ = true;
  if (options_.events != nullptr) {
    options_.events->BeginPass(pass);
  }
  defer_ = may_defer && !capacity_bound_ && AnyPrebuilt();
  if (steady_count_ > 0) {
    ApplySteadyBlocks(pass - 1);
    if (SteadyFits(pass)) {
      ApplySteadyBlocks(pass);
      budget_ -= steady_count_;
      effect_ = true;
    } else {
      Demote(pass - 1, false);
    }
  }
  applied_pass_ = pass;
  ScheduleRunning();
  ScheduleWaiting(effects);
  if (!defer_ && !preempted_any_) {
    capacity_bound_ = !waiting_.empty();
  }
  if (options_.capture_metrics) {
    FillMetrics();
  }
  const double end_ms = Emit(now_ms, effects);
  effects.committed_prefill_tokens += committed_;
  NotePreemptions();
  stuck_ = end_ms == now_ms && !effect_ && !effects.failed;
  // A command may free a destination yet, and a release a source.
  if (stuck_ && role_ != WorkerRole::kDecode && held_count_ == 0) {
    Unstick();
  }
  SignalRejections(effects);
  effects.had_effect = effect_;
  if (options_.capture_metrics) {
    FillQueueMetrics();
  }
  if (calendar_allowed_) {
    PromoteSteady();
  }
  return end_ms;
}

// Requests that fit alone may preempt each other for ever, each losing what it computed before it
// gives a token (oldest-first preemption with speculative bursts). Then they run one at a time
// until one of them ends; a request alone always gets on.
void VllmCore::NotePreemptions() {
  if (!ready_.empty() || steady_count_ > 0) {
    fruitless_passes_ = 0;
  } else if (preempted_any_ && ++fruitless_passes_ > kFruitlessPassesPerRequest *
                                                         (running_count_ + waiting_.size())) {
    fruitless_passes_ = 0;
    one_at_a_time_ = true;
  }
}

void VllmCore::ScheduleRunning() {
  order_list_.clear();
  for (std::uint32_t s = first_explicit_; s != kNoSlot; s = slots_[s].next) {
    order_list_.push_back(s);
  }
  pure_steady_ = order_list_.empty();
  // A victim that stands before index i moves the rest of the list up without moving i: the next
  // running request is skipped in this pass, as the reference does.
  std::size_t i = 0;
  while (i < order_list_.size() && budget_ > 0) {
    const std::uint32_t slot = order_list_[i];
    const RequestState& r = slots_[slot];
    if (defer_ && !(r.computed >= r.prompt && r.allocated >= r.prompt)) {
      ++i;
      continue;
    }
    const Scheduled result = Schedule(slot, nullptr);
    if (result == Scheduled::kBlocked) {
      break;
    }
    if (result == Scheduled::kScheduled) {
      ++i;
    }
  }
  order_list_.clear();
}

void VllmCore::ScheduleWaiting(PassEffects& effects) {
  const std::uint64_t most = one_at_a_time_ ? 1 : max_num_seqs_;
  while (!preempted_any_ && running_count_ < most && !waiting_.empty()) {
    const std::uint32_t slot = Candidate();
    if (slot == kNoSlot) {
      break;
    }
    RequestState& r = slots_[slot];
    Cost cost;
    Rejection rejection;
    const Decision decision = Admit(r, cost, rejection);
    if (decision == Decision::kWait) {
      head_blocked_ = true;
      break;
    }
    if (decision == Decision::kReject) {
      RejectHead(rejection);
      continue;
    }
    if (defer_ && cost.new_tokens > 1) {
      break;
    }
    if (Schedule(slot, &cost) != Scheduled::kScheduled) {
      // Nothing but a larger budget helps, and the steady requests leave no larger one.
      head_blocked_ = pure_steady_ && !reserve_to_completion_;
      break;
    }
    pure_steady_ = false;
    effects.admissions.push_back({slots_[slot].id, cost.cached});
    if (slots_[slot].scheduled_total == 0 && budget_ == 0) {
      break;
    }
  }
}

VllmCore::Scheduled VllmCore::Schedule(std::uint32_t slot, const Cost* cost) {
  RequestState& r = slots_[slot];
  const std::uint64_t cached = r.computed > 0 || cost == nullptr ? 0 : cost->cached;
  const std::uint64_t before = r.computed + cached;
  const std::uint64_t prompt_before = std::min(before, r.prompt);
  const std::uint64_t remaining = r.length > before ? r.length - before : 0;
  if (!chunked_prefill_ && r.prompt - prompt_before > budget_) {
    return Scheduled::kBlocked;
  }
  const std::uint64_t want = std::min(remaining, budget_);
  if (want == 0 && remaining > 0) {
    return Scheduled::kBlocked;
  }
  std::uint64_t after = before + want;
  bool self = false;
  if (GrowOrPreempt(slot, after, before, cached / block_size_, self)) {
    r.computed = after;
  }
  if (self) {
    return Scheduled::kSelfPreempted;
  }
  const std::uint64_t used = after - before;
  if (used == 0 && after < r.length) {
    return Scheduled::kBlocked;
  }
  PublishFull(r, before, after);
  r.scheduled_pass = pass_;
  r.scheduled_total = used;
  r.scheduled_prompt = std::min(after, r.prompt) - prompt_before;
  r.scheduled_prefix = prompt_before;
  if (r.scheduled_prompt > 0) {
    committed_ += used;
    if (role_ != WorkerRole::kDecode) {
      ++batch_count_;
      batch_total_ += prompt_before + r.scheduled_prompt;
      batch_prefix_ += prompt_before;
    }
  }
  if (used > 0) {
    effect_ = true;
  }
  if (cost != nullptr) {
    effect_ = true;
    WaitingRemove(slot);
    RunningAppend(slot);
    r.status = Status::kRunning;
  }
  budget_ -= used;
  return Scheduled::kScheduled;
}

bool VllmCore::GrowOrPreempt(std::uint32_t slot, std::uint64_t& after, std::uint64_t before,
                             std::uint64_t reuse_blocks, bool& self) {
  RequestState& r = slots_[slot];
  while (after > r.allocated) {
    const std::uint64_t had = r.table.blocks;
    if (pool_.Allocate(r.table, r.names, BlocksFor(after), reuse_blocks)) {
      if (r.status == Status::kRunning) {
        running_blocks_ += r.table.blocks - had;
      }
      r.allocated = after;
      break;
    }
    const std::uint32_t victim = PreemptOne();
    if (victim == kNoSlot) {
      after = before;
      return false;
    }
    UndoScheduled(slots_[victim]);
    if (victim == slot) {
      self = true;
      return false;
    }
  }
  return true;
}

std::uint32_t VllmCore::PreemptOne() {
  if (reserve_to_completion_ || running_count_ == 0) {
    return kNoSlot;
  }
  // Only an admitted head gets here while others are steady; from now on this pass is explicit.
  if (steady_count_ > 0) {
    Demote(pass_, true);
  }
  const std::uint32_t victim = fifo_preemption_ ? running_head_ : running_tail_;
  RequestState& v = slots_[victim];
  PressureEvent event;
  if (options_.capture_pressure) {
    event = {.request = v.id,
             .running_before = running_count_,
             .running_after = running_count_ - 1,
             .waiting_before = waiting_.size(),
             .waiting_after = waiting_.size() + 1,
             .active_blocks_before = pool_.active(),
             .victim_blocks = v.table.blocks};
  }
  RunningRemove(victim);
  std::erase(order_list_, victim);
  v.status = Status::kPreempted;
  v.computed = 0;
  v.allocated = 0;
  pool_.Release(v.table);
  waiting_.push_front(victim);
  ++preemptions_;
  ++generation_;
  preempted_any_ = true;
  effect_ = true;
  if (options_.capture_pressure) {
    event.active_blocks_after = pool_.active();
    effects_->pressure.push_back(event);
  }
  return victim;
}

void VllmCore::UndoScheduled(RequestState& r) {
  if (r.scheduled_pass != pass_) {
    return;
  }
  budget_ += r.scheduled_total;
  if (r.scheduled_prompt > 0) {
    committed_ -= r.scheduled_total;
    if (role_ != WorkerRole::kDecode) {
      --batch_count_;
      batch_total_ -= r.scheduled_prefix + r.scheduled_prompt;
      batch_prefix_ -= r.scheduled_prefix;
    }
  }
  r.scheduled_pass = 0;
}

void VllmCore::PublishFull(RequestState& r, std::uint64_t before, std::uint64_t after) {
  if (!prefix_caching_) {
    return;
  }
  const std::uint64_t to = after / block_size_;
  if (to <= before / block_size_) {
    return;
  }
  pool_.Publish(r.table, r.names, to, r.id);
  r.hashed_blocks = std::max(r.hashed_blocks, to);
}

double VllmCore::Emit(double now_ms, PassEffects& effects) {
  // Requests that are complete without a further token (output 0) end first.
  ready_.clear();
  for (std::uint32_t s = first_explicit_; s != kNoSlot;) {
    const std::uint32_t next = slots_[s].next;
    if (slots_[s].computed >= slots_[s].length) {
      if (slots_[s].complete()) {
        Finish(s, effects);
      } else {
        ready_.push_back(s);
      }
    }
    s = next;
  }
  const double prefill_ms = batch_count_ == 0 ? 0.0 : [&] {
    const std::uint64_t mean_total = batch_total_ / batch_count_;
    const std::uint64_t mean_prefix = batch_prefix_ / batch_count_;
    return timer_.PrefillMs({.requests = batch_count_,
                             .mean_new = mean_total > mean_prefix ? mean_total - mean_prefix : 0,
                             .mean_prefix = mean_prefix});
  }();
  const bool speculative = speculative_tokens_ > 0;
  if (speculative && !ready_.empty() && !ReserveBursts()) {
    ready_.clear();
  }

  std::uint64_t requests = steady_count_;
  std::uint64_t context = static_cast<std::uint64_t>(steady_base_sum_) + steady_count_ * pass_;
  for (const std::uint32_t s : ready_) {
    const RequestState& r = slots_[s];
    const bool prefilled_now = r.scheduled_pass == pass_ && r.scheduled_prompt > 0;
    if (speculative || r.generated() > 0 || !prefilled_now) {
      ++requests;
      context += r.length;
    }
    effects.decode_forwards += prefilled_now ? 0 : 1;
  }
  double decode_ms = 0.0;
  if (requests > 0 && role_ != WorkerRole::kPrefill) {
    decode_ms = timer_.DecodeMs({.requests = requests,
                                 .context_tokens = context,
                                 .capacity_tokens = pool_.capacity() * block_size_});
  }
  if (!std::isfinite(prefill_ms) || !std::isfinite(decode_ms)) {
    effects.failed = true;
    return now_ms;
  }
  EmitTokens(effects);
  const double decode_start_ms = now_ms + prefill_ms;
  return decode_start_ms + decode_ms;
}

void VllmCore::EmitTokens(PassEffects& effects) {
  effects.decode_forwards += steady_count_;
  effects.decode_tokens += steady_count_;
  effect_ = effect_ || steady_count_ > 0 || !ready_.empty();
  if (steady_count_ > 0) {
    FinishSteady(pass_, effects);
  }
  if (speculative_tokens_ > 0) {
    EmitBursts(effects);
    return;
  }
  for (const std::uint32_t s : ready_) {
    RequestState& r = slots_[s];
    if (r.scheduled_pass != pass_ || r.scheduled_prompt == 0) {
      ++effects.decode_tokens;
    }
    const bool first = r.generated() == 0;
    ++r.length;
    GiveToken(r, 1);
    SignalEmission(s, first, effects);
  }
}

void VllmCore::GiveToken(RequestState& r, std::uint64_t burst) {
  if (r.track.spans.empty()) {
    r.track.first_burst = burst;
  }
  if (!r.track.spans.empty() && r.track.spans.back().last + 1 == pass_) {
    r.track.spans.back().last = pass_;
  } else {
    r.track.spans.push_back({pass_, pass_});
  }
  if (options_.capture_tokens) {
    effects_->gains.push_back({.request = r.id, .tokens = static_cast<std::uint32_t>(burst)});
  }
}

void VllmCore::SignalEmission(std::uint32_t slot, bool first, PassEffects& effects) {
  if (slots_[slot].complete()) {
    Finish(slot, effects);
  } else if (first) {
    effects.signals.push_back(
        {.kind = Signal::Kind::kFirstToken, .request = slots_[slot].id, .index = 0});
  }
}

void VllmCore::Finish(std::uint32_t slot, PassEffects& effects) {
  if (role_ == WorkerRole::kPrefill) {
    Hold(slot, effects);
    return;
  }
  RequestState& r = slots_[slot];
  RunningRemove(slot);
  pool_.Release(r.table);
  r.track.tokens = r.generated();
  effects.signals.push_back({.kind = Signal::Kind::kFinished,
                             .request = r.id,
                             .index = static_cast<std::uint32_t>(effects.finished.size())});
  effects.finished.push_back(std::move(r.track));
  r.track = {};
  if (role_ == WorkerRole::kDecode) {
    Forget(r.id);
  }
  free_slots_.push_back(slot);
  head_blocked_ = false;
  one_at_a_time_ = false;
  effect_ = true;
  ++generation_;
}

void VllmCore::RejectHead(const Rejection& reason) {
  const std::uint32_t slot = waiting_.front();
  waiting_.pop_front();
  RequestState& r = slots_[slot];
  pool_.Release(r.table);
  // Told after all emissions of the pass.
  rejected_.emplace_back(r.id, reason);
  r.track = {};
  if (role_ != WorkerRole::kAggregated) {
    Forget(r.id);
  }
  ++generation_;
  free_slots_.push_back(slot);
  effect_ = true;
}

bool VllmCore::AnyPrebuilt() const {
  if (steady_count_ > 0) {
    return true;
  }
  for (std::uint32_t s = first_explicit_; s != kNoSlot; s = slots_[s].next) {
    if (slots_[s].computed >= slots_[s].prompt && slots_[s].allocated >= slots_[s].prompt) {
      return true;
    }
  }
  return false;
}

std::uint64_t VllmCore::OldestLivePass() const {
  std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
  const auto look = [&](std::uint32_t s) {
    if (!slots_[s].track.spans.empty()) {
      oldest = std::min(oldest, slots_[s].track.spans.front().first);
    }
  };
  for (std::uint32_t s = running_head_; s != kNoSlot; s = slots_[s].next) {
    look(s);
  }
  for (const std::uint32_t s : waiting_) {
    look(s);
  }
  return oldest;
}

RankMetrics VllmCore::Metrics() const {
  return {.active_blocks = pool_.active(),
          .inactive_blocks = pool_.inactive(),
          .total_blocks = pool_.capacity(),
          .running_requests = running_count_,
          .waiting_requests = waiting_.size() + pending_.size() + reserved_count_,
          .preemptions_total = preemptions_};
}

}  // namespace dynosim::engine::vllm
