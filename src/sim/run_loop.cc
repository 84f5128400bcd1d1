// SPDX-License-Identifier: Apache-2.0
#include "sim/run_loop.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "base/scratch_file.h"
#include "engine/effects.h"
#include "engine/settings.h"
#include "engine/worker.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "sim/pool_router.h"
#include "sim/run.h"
#include "workload/source.h"

namespace dynosim::sim {

namespace {

// Drains between two calls of the progress hook.
constexpr std::uint64_t kProgressDrains = 4096;
// Zero-time passes without any effect that one worker may make in a row at one time.
constexpr std::uint64_t kIdlePassLimit = 10000;

// A page gets between half as many samples and this.
constexpr std::size_t kPageSamplesMax = 1001;

}  // namespace

RunLoop::RunLoop(const scenario::Scenario& scenario, workload::RequestSource& source,
                 const RunHooks& hooks)
    : scenario_(scenario),
      source_(source),
      recorder_(source.RequestCount(), scenario.capture_per_request || scenario.timeline,
                source.Agentic() != nullptr, scenario.timeline),
      hooks_(hooks) {
  if (hooks.ended && source.InOrder() && !scenario.capture_per_request && !scenario.timeline) {
    recorder_.set_ended(hooks.ended, hooks.scratch);
  }
  if (scenario.telemetry.enabled()) {
    telemetry_.emplace(scenario.telemetry.sample_interval_ms,
                       scenario.telemetry.fits_page ? kPageSamplesMax : 0);
    telemetry_->SetSink(hooks.sampled);
  }
  if (scenario.placements) {
    forced_.emplace(*scenario.placements, source);
  }
}

RoutingContext RunLoop::MakeRoutingContext() {
  return {.scenario = scenario_,
          .source = source_,
          .recorder = recorder_,
          .telemetry = telemetry_,
          .forced = forced_ ? &*forced_ : nullptr};
}

std::uint32_t RunLoop::AddWorker(const engine::EngineSettings& settings, Pool pool,
                                 std::uint32_t id, PoolRouter& router) {
  const auto place = static_cast<std::uint32_t>(workers_.size());
  workers_.emplace_back(settings, id,
                        engine::WorkerOptions{.fast_path = !scenario_.pass_by_pass,
                                              .capture_kv_events = router.WantsEvents(),
                                              .publish_metrics = scenario_.telemetry.enabled()});
  router.AddWorker(workers_.back());
  if (routers_.empty() || routers_.back() != &router) {
    routers_.push_back(&router);
  }
  feeds_.push_back(router.feed());
  runnable_.resize(place / 64 + 1, 0);
  recorder_.AddWorker(pool, id);
  if (telemetry_) {
    telemetry_->AddWorker(workers_.back(), pool);
  }
  return place;
}

Result<Outcome> RunLoop::Run() {
  DYNO_TRY_VOID(Loop());
  if (const Error* const problem = source_.Problem()) {
    return std::unexpected(*problem);
  }
  if (telemetry_) {
    telemetry_->TakeFinal(now_ms_);
    DYNO_TRY_VOID(SamplesAccepted());
    recorder_.outcome().telemetry = std::move(telemetry_->samples());
  }
  for (std::uint32_t place = 0; place < workers_.size(); ++place) {
    recorder_.Settle(place, workers_[place]);
  }
  if (forced_ && forced_->unclaimed() > 0 && !scenario_.max_sim_time_ms) {
    return FailedError("--placements", std::to_string(forced_->unclaimed()) +
                                           " rows of the report match no request of this run");
  }
  Outcome outcome = recorder_.Take(now_ms_);
  FillOutcome(outcome);
  return outcome;
}

Result<void> RunLoop::Loop() {
  const double cap_ms = scenario_.max_sim_time_ms.value_or(std::numeric_limits<double>::infinity());
  DYNO_TRY_VOID(DrainAt(0.0));
  if (telemetry_) {
    telemetry_->Take(TelemetrySample::Kind::kBaseline, 0.0);
  }
  while (true) {
    const std::optional<double> next_ms = NextEventMs();
    if (!next_ms) {
      if (recorder_.terminal() == recorder_.arrived() && source_.Exhausted()) {
        return {};
      }
      if (!Unstick()) {
        return std::unexpected(DeadEnd());
      }
      DYNO_TRY_VOID(DrainAt(now_ms_));
      continue;
    }
    if (*next_ms > cap_ms) {
      return StopAtCap(*next_ms, cap_ms);
    }
    TakeTicksBefore(*next_ms);
    DYNO_TRY_VOID(DrainAt(*next_ms));
  }
}

// Passes inside a planned run are events too: the run ends with the last one before the cap.
Result<void> RunLoop::StopAtCap(double next_ms, double cap_ms) {
  TakeTicksBefore(
      std::min(next_ms, std::nextafter(cap_ms, std::numeric_limits<double>::infinity())));
  for (const engine::Worker& worker : workers_) {
    if (worker.Busy()) {
      now_ms_ = std::max(now_ms_, worker.LastEndMs(cap_ms, now_ms_));
    }
  }
  return {};
}

Result<void> RunLoop::DrainAt(double now_ms) {
  now_ms_ = now_ms;
  DYNO_TRY_VOID(Drain(now_ms));
  recorder_.PassOnEnded();
  if (hooks_.scratch != nullptr && hooks_.scratch->problem() != nullptr) {
    return std::unexpected(*hooks_.scratch->problem());
  }
  if (source_.WantsHeldGroups()) {
    ReportHeldGroups();
  }
  if (hooks_.progress && drains_++ % kProgressDrains == 0 &&
      !hooks_.progress(now_ms, recorder_.terminal(), source_.RequestCount())) {
    return FailedError("", "interrupted");
  }
  return SamplesAccepted();
}

Result<void> RunLoop::SamplesAccepted() const {
  return telemetry_ && telemetry_->stopped() ? FailedError("", "interrupted") : Result<void>();
}

void RunLoop::ReportHeldGroups() {
  held_groups_.clear();
  for (const engine::Worker& worker : workers_) {
    worker.AppendHeldGroups(held_groups_);
  }
  for (const PoolRouter* const router : routers_) {
    router->AppendHeldGroups(held_groups_);
  }
  source_.OnHeldGroups(held_groups_);
}

Error RunLoop::DeadEnd() const {
  return {ErrorKind::kFailed, "",
          fmt::format("the run reached a dead end at {} ms with {} requests in flight", now_ms_,
                      recorder_.arrived() - recorder_.terminal())};
}

Error RunLoop::TimingFailed(const engine::Worker& worker, double now_ms) {
  return {ErrorKind::kFailed, "",
          fmt::format("worker {}: the timing model gave no finite duration at {} ms", worker.id(),
                      now_ms)};
}

Error RunLoop::NoProgress(const engine::Worker& worker, double now_ms) {
  std::string text = fmt::format("worker {} makes no progress at {} ms:", worker.id(), now_ms);
  for (std::uint32_t rank = 0; rank < worker.ranks(); ++rank) {
    const engine::RankMetrics m = worker.core(rank).Metrics();
    text +=
        fmt::format(" rank {} runs {} requests and {} wait, with {} of {} KV blocks in use;", rank,
                    m.running_requests, m.waiting_requests, m.active_blocks, m.total_blocks);
  }
  text.pop_back();
  return {ErrorKind::kFailed, "", text};
}

std::optional<double> RunLoop::NextEventMs() const {
  std::optional<double> next = source_.NextReadyMs();
  if (next) {
    next = std::max(*next, now_ms_);
  }
  if (!queue_.empty() && (!next || queue_.TopMs() < *next)) {
    next = queue_.TopMs();
  }
  const std::optional<double> other = NextTopologyEventMs();
  if (other && (!next || *other < *next)) {
    next = other;
  }
  return next;
}

// The next event at or after `now_ms`, inside planned runs too.
double RunLoop::NextWorkMs(double now_ms) const {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  double next =
      std::min(source_.NextReadyMs().value_or(kNever), NextTopologyEventMs().value_or(kNever));
  for (const engine::Worker& worker : workers_) {
    if (worker.Busy()) {
      next = std::min(next, worker.FirstEndAtOrAfterMs(now_ms));
    }
  }
  return next;
}

// Samples that are due before the next event. A sample is only taken while an event that is not
// beyond the cap is still to come.
void RunLoop::TakeTicksBefore(double next_ms) {
  if (!telemetry_) {
    return;
  }
  while (!telemetry_->stopped() && telemetry_->NextMs() < next_ms) {
    const double at_ms = telemetry_->NextMs();
    if (scenario_.max_sim_time_ms && NextWorkMs(at_ms) > *scenario_.max_sim_time_ms) {
      return;
    }
    telemetry_->Take(TelemetrySample::Kind::kPeriodic, at_ms);
  }
}

void RunLoop::TakeTickAt(double now_ms) {
  if (telemetry_ && !telemetry_->samples().empty() && telemetry_->NextMs() == now_ms) {
    telemetry_->Take(TelemetrySample::Kind::kPeriodic, now_ms);
  }
}

bool RunLoop::NextArrival(double now_ms, workload::Request& out) {
  if (!source_.Release(now_ms, out)) {
    return false;
  }
  recorder_.OnArrival(out);
  if (telemetry_) {
    telemetry_->OnArrival();
  }
  return true;
}

void RunLoop::CompletePass(std::uint32_t place, double now_ms) {
  workers_[place].Complete();
  CollectEvents(place, now_ms);
}

bool RunLoop::CompleteDue(double now_ms) {
  bool changed = false;
  while (!queue_.empty() && queue_.TopMs() == now_ms) {
    const std::uint32_t place = queue_.TopWorker();
    queue_.Pop();
    CompletePass(place, now_ms);
    ApplyPass(place, now_ms);
    MarkRunnable(place);
    changed = true;
  }
  return changed;
}

Result<bool> RunLoop::StartWorkers(Pool pool, std::uint32_t from, std::uint32_t to, double now_ms) {
  bool changed = false;
  while (const std::optional<std::uint32_t> place = TakeRunnable(from, to)) {
    started_places_ = std::max(started_places_, *place);
    DYNO_TRY(const bool ended, StartWorker(pool, *place, now_ms));
    changed = changed || ended;
  }
  return changed;
}

Result<bool> RunLoop::StartWorker(Pool pool, std::uint32_t place, double now_ms) {
  engine::Worker& w = workers_[place];
  bool ended = false;
  std::uint64_t idle_passes = 0;
  while (w.CanStart()) {
    recorder_.OnPassStart(place, w.passes() + 1, now_ms);
    w.Start(now_ms);
    if (w.Failed()) {
      return std::unexpected(TimingFailed(w, now_ms));
    }
    for (std::uint32_t rank = 0; rank < w.ranks(); ++rank) {
      for (const engine::Admission& admission : w.Effects(rank).admissions) {
        recorder_.OnAdmitted(admission.request, pool, now_ms, admission.reused_tokens);
      }
    }
    if (w.NextMs() > now_ms) {
      if (feeds_[place] != nullptr) {
        feeds_[place]->OnStarted(w.id());
      }
      queue_.Set(place, w.NextMs());
      break;
    }
    CompletePass(place, now_ms);
    const bool effect = w.HadEffect();
    ApplyPass(place, now_ms);
    if (!effect && SetAside(place)) {
      break;
    }
    ended = true;
    idle_passes = effect ? 0 : idle_passes + 1;
    if (idle_passes > kIdlePassLimit) {
      return std::unexpected(NoProgress(w, now_ms));
    }
  }
  return ended;
}

void RunLoop::Requeue(std::uint32_t place) {
  CollectEvents(place, now_ms_);
  const engine::Worker& worker = workers_[place];
  if (worker.Busy()) {
    queue_.Set(place, worker.NextMs());
  } else {
    queue_.Remove(place);
    MarkRunnable(place);
  }
}

std::optional<std::uint32_t> RunLoop::TakeRunnable(std::uint32_t from, std::uint32_t to) {
  for (std::uint32_t word = from / 64; word * 64 < to; ++word) {
    std::uint64_t bits = runnable_[word];
    if (word == from / 64) {
      bits &= ~0ULL << (from % 64);
    }
    if (bits == 0) {
      continue;
    }
    const std::uint32_t place = word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
    if (place >= to) {
      return std::nullopt;
    }
    runnable_[word] &= ~(1ULL << (place % 64));
    return place;
  }
  return std::nullopt;
}

}  // namespace dynosim::sim
