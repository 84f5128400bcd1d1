// SPDX-License-Identifier: Apache-2.0
#include "engine/worker.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "base/check.h"
#include "engine/core.h"
#include "engine/effects.h"
#include "engine/kv_event_buffer.h"
#include "engine/settings.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::engine {

namespace {

// Length of a planned run. Long enough that planning costs nothing per pass, short enough that a
// request that cuts a run throws little away.
constexpr std::uint64_t kRunPasses = 128;

}  // namespace

Worker::Worker(const EngineSettings& settings, std::uint32_t id, const WorkerOptions& options)
    : id_(id),
      defer_interval_(settings.dp_size > 1 ? settings.prefill_schedule_interval : 1),
      options_(options),
      effects_(settings.dp_size),
      published_(settings.dp_size) {
  for (std::uint32_t rank = 0; rank < settings.dp_size; ++rank) {
    if (options.capture_kv_events) {
      events_.push_back(std::make_unique<KvEventBuffer>(rank));
    }
    cores_.push_back(
        MakeCore(settings, {.worker = id,
                            .rank = rank,
                            .fast_path = options.fast_path,
                            .capture_metrics = options.capture_metrics,
                            .capture_pressure = options.capture_pressure,
                            .capture_tokens = options.capture_tokens,
                            .events = options.capture_kv_events ? events_.back().get() : nullptr}));
    published_[rank] = cores_[rank]->Metrics();
  }
}

void Worker::Submit(const workload::Request& request, const workload::RequestSource& source,
                    std::uint32_t rank, double now_ms, bool first_round) {
  Touch(now_ms, first_round);
  cores_[rank]->Submit(request, source);
  PublishRank(rank);
}

void Worker::Touch(double now_ms, bool first_round) {
  if (Planned()) {
    CutRun(now_ms, first_round);
  }
}

void Worker::PublishRank(std::uint32_t rank) {
  if (options_.publish_metrics) {
    published_[rank] = cores_[rank]->Metrics();
  }
}

bool Worker::Cancel(std::uint32_t rank, std::uint32_t request, double now_ms) {
  Touch(now_ms, false);
  const bool found = cores_[rank]->Cancel(request);
  PublishRank(rank);
  return found;
}

bool Worker::QueueReservation(std::uint32_t rank, const workload::Request& request,
                              const workload::RequestSource& source, double now_ms,
                              bool first_round, Rejection& why) {
  Touch(now_ms, first_round);
  const bool accepted = cores_[rank]->QueueReservation(request, source, why);
  PublishRank(rank);
  return accepted;
}

std::optional<Grant> Worker::TryReserve(std::uint32_t rank) {
  const std::optional<Grant> grant = cores_[rank]->TryReserve();
  PublishRank(rank);
  return grant;
}

void Worker::Activate(std::uint32_t rank, std::uint32_t request) {
  cores_[rank]->Activate(request);
  PublishRank(rank);
}

void Worker::CancelDestination(std::uint32_t rank, std::uint32_t request) {
  cores_[rank]->CancelDestination(request);
  PublishRank(rank);
}

void Worker::ReleaseSource(std::uint32_t rank, std::uint32_t request) {
  cores_[rank]->ReleaseSource(request);
  PublishRank(rank);
}

void Worker::CancelSource(std::uint32_t rank, std::uint32_t request) {
  cores_[rank]->CancelSource(request);
  PublishRank(rank);
}

bool Worker::ActWhenStuck(std::uint32_t rank) {
  if (busy_) {
    return false;
  }
  for (PassEffects& effects : effects_) {
    effects.Clear();
  }
  return cores_[rank]->ActWhenStuck(effects_[rank]);
}

void Worker::CutRun(double now_ms, bool first_round) {
  const std::uint64_t in_flight =
      first_round ? log_.FirstEndingAtOrAfter(pass_, now_ms) : log_.FirstEndingAfter(pass_, now_ms);
  if (in_flight >= log_.last() && NextMs() == now_ms) {
    ExecuteThrough(log_.last());  // the run's own end is due now, and its signals with it
    return;
  }
  if (in_flight < log_.last()) {
    log_.TruncateAfter(in_flight);
  }
  if (first_round && NextMs() == now_ms) {
    Complete();
    return;
  }
  // An observer sees a command together with the pass in progress, which has changed the scheduler
  // at its start already.
  if (options_.publish_metrics) {
    if (log_.last() - 1 > pass_) {
      ExecuteThrough(log_.last() - 1);
      CountDecode();
      for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
        PublishRank(rank);
      }
    }
    ExecuteThrough(log_.last());
  }
}

bool Worker::CanStart() const {
  if (busy_) {
    return false;
  }
  return std::ranges::any_of(cores_, [](const auto& core) { return core->HasWork(); });
}

void Worker::Start(double now_ms) {
  DYNO_DCHECK(!busy_);
  for (PassEffects& effects : effects_) {
    effects.Clear();
  }
  busy_ = true;
  if (PlanRun(now_ms)) {
    return;
  }
  executed_ = true;
  const std::uint64_t pass = pass_ + 1;
  const bool may_defer = wave_step_ % defer_interval_ != 0;
  double end_ms = now_ms;
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    if (!cores_[rank]->HasWork()) {
      continue;
    }
    end_ms = std::max(end_ms, cores_[rank]->RunPass(now_ms, pass, may_defer, effects_[rank]));
  }
  log_.Append(end_ms);
}

// A run is possible while every rank that has work is steady.
bool Worker::PlanRun(double now_ms) {
  std::uint64_t passes = kRunPasses;
  for (const auto& core : cores_) {
    if (core->ReservationDue()) {
      passes = 1;
    }
    if (!core->HasWork()) {
      continue;
    }
    passes = core->SteadyPasses(pass_, passes);
    if (passes == 0) {
      return false;
    }
  }
  executed_ = false;
  longest_.assign(passes, 0.0);
  for (const auto& core : cores_) {
    if (!core->HasWork()) {
      continue;
    }
    durations_.resize(passes);
    core->SteadyDurationsMs(pass_, durations_);
    if (cores_.size() == 1) {
      longest_.swap(durations_);
      break;
    }
    for (std::size_t i = 0; i < passes; ++i) {
      longest_[i] = std::max(longest_[i], durations_[i]);
    }
  }
  double end_ms = now_ms;
  for (const double duration_ms : longest_) {
    end_ms += duration_ms;
    log_.Append(end_ms);
  }
  if (!std::isfinite(end_ms)) {
    effects_[0].failed = true;
  }
  return true;
}

void Worker::ExecuteThrough(std::uint64_t pass) {
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    if (cores_[rank]->HasWork()) {
      cores_[rank]->AdvanceSteady(pass, effects_[rank]);
    }
  }
  advanced_ = pass;
  if (pass == log_.last()) {
    executed_ = true;
  }
}

void Worker::Advance(double now_ms) {
  if (!Planned()) {
    return;
  }
  const std::uint64_t ended = LastEnded(now_ms);
  if (ended > std::max(pass_, advanced_) && ended != log_.last()) {
    ExecuteThrough(ended);
  }
}

double Worker::NextHiddenEventMs(bool any) const {
  const std::uint64_t from = std::max(pass_, advanced_) + 1;
  std::uint64_t first = log_.last() + 1;
  if (!Planned() || from >= first) {
    return std::numeric_limits<double>::infinity();
  }
  if (any) {
    return log_.EndMs(from);
  }
  for (const auto& core : cores_) {
    if (core->HasWork()) {
      first = std::min(first, core->SteadyRemovalPass(log_.last()));
    }
  }
  return first > log_.last() ? std::numeric_limits<double>::infinity() : log_.EndMs(first);
}

void Worker::Complete() {
  DYNO_DCHECK(busy_);
  if (!executed_) {
    ExecuteThrough(log_.last());
  }
  WorkerPasses passes = {.count = log_.last() - pass_};
  for (const PassEffects& effects : effects_) {
    passes.any_prefill = passes.any_prefill || effects.committed_prefill_tokens > 0;
    passes.any_work = passes.any_work || effects.ran;
  }
  for (const auto& core : cores_) {
    core->EndWorkerPasses(passes);
  }
  wave_step_ += log_.last() - pass_;
  pass_ = log_.last();
  busy_ = false;
  if (Drained()) {
    wave_step_ = 0;
  }
  if (options_.publish_metrics) {
    CountDecode();
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
      published_[rank] = cores_[rank]->Metrics();
    }
  }
}

void Worker::CountDecode() {
  for (PassEffects& effects : effects_) {
    decode_.forwards += effects.decode_forwards;
    decode_.tokens += effects.decode_tokens;
    effects.decode_forwards = effects.decode_tokens = 0;
  }
}

void Worker::AppendHeldGroups(std::vector<std::uint32_t>& groups) const {
  for (const std::unique_ptr<SchedulerCore>& core : cores_) {
    core->AppendHeldGroups(groups);
  }
}

void Worker::Publish(double now_ms) {
  if (!Planned()) {
    return;
  }
  const std::uint64_t ended = log_.FirstEndingAfter(pass_, now_ms) - 1;
  if (ended <= pass_ || ended == log_.last()) {
    return;
  }
  ExecuteThrough(ended);
  CountDecode();
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    published_[rank] = cores_[rank]->Metrics();
  }
}

bool Worker::Failed() const {
  return std::ranges::any_of(effects_, [](const PassEffects& e) { return e.failed; });
}

bool Worker::Drained() const {
  return std::ranges::all_of(cores_, [](const auto& core) { return core->Drained(); });
}

std::uint64_t Worker::OldestLivePass() const {
  std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
  for (const auto& core : cores_) {
    oldest = std::min(oldest, core->OldestLivePass());
  }
  return oldest;
}

std::uint64_t Worker::Preemptions() const {
  std::uint64_t sum = 0;
  for (const auto& core : cores_) {
    sum += core->Metrics().preemptions_total;
  }
  return sum;
}

double Worker::LastEndMs(double now_ms, double otherwise) const {
  const std::uint64_t ended = log_.FirstEndingAfter(log_.first() - 1, now_ms) - 1;
  return ended < log_.first() ? otherwise : log_.EndMs(ended);
}

double Worker::FirstEndAtOrAfterMs(double now_ms) const {
  return log_.EndMs(std::min(log_.FirstEndingAtOrAfter(pass_, now_ms), log_.last()));
}

bool Worker::HadEffect() const {
  return std::ranges::any_of(effects_, [](const PassEffects& e) { return e.had_effect; });
}

}  // namespace dynosim::engine
