// SPDX-License-Identifier: Apache-2.0
#include "sim/aggregated.h"

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
#include "engine/effects.h"
#include "engine/settings.h"
#include "engine/worker.h"
#include "router/round_robin.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "sim/run.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::sim {

namespace {

// Zero-time passes without any effect that one worker may make in a row at one time.
constexpr std::uint64_t kIdlePassLimit = 10000;
// Drains between two calls of the progress hook.
constexpr std::uint64_t kProgressDrains = 4096;

}  // namespace

AggregatedRun::AggregatedRun(const scenario::Scenario& scenario, workload::RequestSource& source,
                             const RunHooks& hooks)
    : scenario_(scenario),
      source_(source),
      hooks_(hooks),
      runnable_((scenario.num_workers + 63) / 64, 0),
      placement_(scenario.num_workers, scenario.engine.dp_size),
      recorder_(source.RequestCount(), scenario.num_workers, scenario.capture_per_request) {
  workers_.reserve(scenario.num_workers);
  for (std::uint32_t id = 0; id < scenario.num_workers; ++id) {
    workers_.emplace_back(scenario.engine, id,
                          engine::WorkerOptions{.fast_path = !scenario.pass_by_pass,
                                                .publish_metrics = scenario.telemetry.enabled()});
  }
  if (scenario.telemetry.enabled()) {
    telemetry_.emplace(scenario.telemetry.sample_interval_ms);
  }
}

Result<Outcome> AggregatedRun::Run() {
  DYNO_TRY_VOID(Loop());
  if (telemetry_) {
    telemetry_->TakeFinal(now_ms_, workers_);
    recorder_.outcome().telemetry = std::move(telemetry_->samples());
  }
  Outcome outcome = recorder_.Take(workers_);
  outcome.end_ms = now_ms_;
  outcome.decode_worker_seconds = static_cast<double>(workers_.size()) * now_ms_ / 1000.0;
  outcome.decode_gpus_per_worker =
      std::uint64_t{scenario_.engine.tensor_parallel_size} * scenario_.engine.dp_size;
  return outcome;
}

Result<void> AggregatedRun::Loop() {
  const double cap_ms = scenario_.max_sim_time_ms.value_or(std::numeric_limits<double>::infinity());
  DYNO_TRY_VOID(Drain(0.0));
  if (telemetry_) {
    telemetry_->Take(TelemetrySample::Kind::kBaseline, 0.0, workers_);
  }
  for (std::uint64_t drains = 0;; ++drains) {
    const std::optional<double> next_ms = NextEventMs();
    if (!next_ms) {
      break;
    }
    if (*next_ms > cap_ms) {
      // Passes inside a planned run are events too: the run ends with the last one before the cap.
      TakeTicksBefore(std::min(*next_ms, std::nextafter(cap_ms, 2 * cap_ms + 1)));
      for (const engine::Worker& worker : workers_) {
        if (worker.Busy()) {
          now_ms_ = std::max(now_ms_, worker.LastEndMs(cap_ms, now_ms_));
        }
      }
      return {};
    }
    TakeTicksBefore(*next_ms);
    DYNO_TRY_VOID(Drain(*next_ms));
    if (hooks_.progress && drains % kProgressDrains == 0 &&
        !hooks_.progress(now_ms_, recorder_.terminal(), source_.RequestCount())) {
      return FailedError("", "interrupted");
    }
  }
  if (recorder_.terminal() != recorder_.arrived() || !source_.Exhausted()) {
    return FailedError(
        "", fmt::format("the run reached a dead end at {} ms with {} requests in flight", now_ms_,
                        recorder_.arrived() - recorder_.terminal()));
  }
  return {};
}

std::optional<double> AggregatedRun::NextEventMs() const {
  std::optional<double> next = source_.NextReadyMs();
  if (next) {
    next = std::max(*next, now_ms_);
  }
  if (!queue_.empty() && (!next || queue_.TopMs() < *next)) {
    next = queue_.TopMs();
  }
  return next;
}

// The next pass end or arrival at or after `now_ms`, inside planned runs too.
double AggregatedRun::NextWorkMs(double now_ms) const {
  double next = source_.NextReadyMs().value_or(std::numeric_limits<double>::infinity());
  for (const engine::Worker& worker : workers_) {
    if (worker.Busy()) {
      next = std::min(next, worker.FirstEndAtOrAfterMs(now_ms));
    }
  }
  return next;
}

// Samples that are due before the next event. A sample is only taken while an event that is not
// beyond the cap is still to come.
void AggregatedRun::TakeTicksBefore(double next_ms) {
  if (!telemetry_) {
    return;
  }
  while (telemetry_->NextMs() < next_ms) {
    const double at_ms = telemetry_->NextMs();
    if (scenario_.max_sim_time_ms && NextWorkMs(at_ms) > *scenario_.max_sim_time_ms) {
      return;
    }
    telemetry_->Take(TelemetrySample::Kind::kPeriodic, at_ms, workers_);
  }
}

Result<void> AggregatedRun::Drain(double now_ms) {
  now_ms_ = now_ms;
  bool first_round = true;
  while (true) {
    bool changed = CompleteDue(now_ms);
    changed = ReleaseArrivals(now_ms, first_round) || changed;
    DYNO_TRY(const bool ended, StartRunnable(now_ms));
    if (telemetry_ && !telemetry_->samples().empty() && telemetry_->NextMs() == now_ms) {
      telemetry_->Take(TelemetrySample::Kind::kPeriodic, now_ms, workers_);
    }
    if (!changed && !ended) {
      return {};
    }
    first_round = false;
  }
}

bool AggregatedRun::CompleteDue(double now_ms) {
  bool changed = false;
  while (!queue_.empty() && queue_.TopMs() == now_ms) {
    engine::Worker& worker = workers_[queue_.TopWorker()];
    queue_.Pop();
    worker.Complete();
    ApplySignals(worker, now_ms);
    MarkRunnable(worker.id());
    changed = true;
  }
  return changed;
}

bool AggregatedRun::ReleaseArrivals(double now_ms, bool first_round) {
  bool changed = false;
  workload::Request request;
  while (source_.Release(now_ms, request)) {
    changed = true;
    recorder_.OnArrival(request);
    if (telemetry_) {
      telemetry_->OnArrival();
    }
    const router::Target target = placement_.Place();
    recorder_.OnRouted(request.id,
                       {.worker = target.worker,
                        .scheduler = target.worker * scenario_.engine.dp_size + target.rank,
                        .dp_rank = target.rank});
    engine::Worker& worker = workers_[target.worker];
    worker.Submit(request, source_, target.rank, now_ms, first_round);
    if (worker.Busy()) {
      queue_.Set(worker.id(), worker.NextMs());
    } else {
      queue_.Remove(worker.id());
      MarkRunnable(worker.id());
    }
  }
  return changed;
}

// Starts passes, lowest worker first. True if one of them has ended already.
Result<bool> AggregatedRun::StartRunnable(double now_ms) {
  bool ended = false;
  while (const std::optional<std::uint32_t> id = FirstRunnable()) {
    engine::Worker& worker = workers_[*id];
    runnable_[*id / 64] &= ~(1ULL << (*id % 64));
    std::uint64_t idle_passes = 0;
    while (worker.CanStart()) {
      worker.Start(now_ms);
      if (worker.Failed()) {
        return FailedError(
            "", fmt::format("worker {}: the timing model gave no finite duration at {} ms", *id,
                            now_ms));
      }
      ApplyAdmissions(worker, now_ms);
      if (worker.NextMs() > now_ms) {
        queue_.Set(*id, worker.NextMs());
        break;
      }
      ended = true;
      worker.Complete();
      ApplySignals(worker, now_ms);
      idle_passes = worker.HadEffect() ? 0 : idle_passes + 1;
      if (idle_passes > kIdlePassLimit) {
        return std::unexpected(NoProgress(worker, now_ms));
      }
    }
  }
  return ended;
}

Error AggregatedRun::NoProgress(const engine::Worker& worker, double now_ms) const {
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

void AggregatedRun::ApplyAdmissions(const engine::Worker& worker, double now_ms) {
  for (std::uint32_t rank = 0; rank < worker.ranks(); ++rank) {
    for (const engine::Admission& admission : worker.Effects(rank).admissions) {
      recorder_.OnAdmitted(admission.request, Pool::kAggregated, now_ms, admission.reused_tokens);
    }
  }
}

void AggregatedRun::ApplySignals(engine::Worker& worker, double now_ms) {
  for (std::uint32_t rank = 0; rank < worker.ranks(); ++rank) {
    const engine::PassEffects& effects = worker.Effects(rank);
    recorder_.outcome().committed_prefill_tokens += effects.committed_prefill_tokens;
    for (const engine::Signal& signal : effects.signals) {
      ApplySignal(signal, effects, worker, now_ms);
    }
  }
  recorder_.MaybeSettle(worker);
}

void AggregatedRun::ApplySignal(const engine::Signal& signal, const engine::PassEffects& effects,
                                const engine::Worker& worker, double now_ms) {
  switch (signal.kind) {
    case engine::Signal::Kind::kFirstToken:
      return;
    case engine::Signal::Kind::kFinished: {
      const engine::TokenTrack& track = effects.finished[signal.index];
      recorder_.OnCompleted(signal.request, now_ms, track, worker);
      if (telemetry_) {
        telemetry_->OnCompleted(recorder_.record(signal.request));
      }
      source_.OnTerminal(signal.request, now_ms, workload::TerminalStatus::kCompleted,
                         track.tokens);
      return;
    }
    case engine::Signal::Kind::kRejected:
      recorder_.OnRejected(signal.request, now_ms, effects.rejections[signal.index]);
      if (telemetry_) {
        telemetry_->OnOtherTerminal();
      }
      source_.OnTerminal(signal.request, now_ms, workload::TerminalStatus::kRejected, 0);
      return;
  }
}

void AggregatedRun::MarkRunnable(std::uint32_t worker) {
  runnable_[worker / 64] |= 1ULL << (worker % 64);
}

std::optional<std::uint32_t> AggregatedRun::FirstRunnable() const {
  for (std::size_t i = 0; i < runnable_.size(); ++i) {
    if (runnable_[i] != 0) {
      return static_cast<std::uint32_t>(i * 64) +
             static_cast<std::uint32_t>(std::countr_zero(runnable_[i]));
    }
  }
  return std::nullopt;
}

}  // namespace dynosim::sim
