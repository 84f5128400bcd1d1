// SPDX-License-Identifier: Apache-2.0
#include "sim/disaggregated.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/effects.h"
#include "engine/settings.h"
#include "engine/worker.h"
#include "router/router.h"
#include "scenario/scenario.h"
#include "sim/handoff.h"
#include "sim/outcome.h"
#include "sim/pool_router.h"
#include "sim/run.h"
#include "sim/run_loop.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::sim {

namespace {

double WorkerSeconds(std::uint32_t workers, double end_ms) {
  return static_cast<double>(workers) * end_ms / 1000.0;
}

}  // namespace

DisaggregatedRun::DisaggregatedRun(const scenario::Scenario& scenario,
                                   workload::RequestSource& source, const RunHooks& hooks)
    : RunLoop(scenario, source, hooks),
      prefill_{&*scenario.prefill_engine, Pool::kPrefill, 0, scenario.num_prefill_workers},
      decode_{&*scenario.decode_engine, Pool::kDecode, scenario.num_prefill_workers,
              scenario.num_decode_workers},
      prefill_router_(MakeRoutingContext(), Pool::kPrefill, *scenario.prefill_engine,
                      scenario.num_prefill_workers),
      decode_router_(MakeRoutingContext(), Pool::kDecode, *scenario.decode_engine,
                     scenario.num_decode_workers),
      handoffs_({.prefill = *prefill_.settings,
                 .decode = *decode_.settings,
                 .prefill_workers = prefill_.workers,
                 .decode_workers = decode_.workers},
                *this, *this) {
  for (const PoolState* pool : {&prefill_, &decode_}) {
    for (std::uint32_t id = 0; id < pool->workers; ++id) {
      AddWorker(*pool->settings, pool->pool, id, RouterOf(pool->pool));
    }
  }
  if (telemetry_) {
    telemetry_->SetPending(Pool::kPrefill, [this] { return prefill_router_.Pending(); });
    telemetry_->SetPending(Pool::kDecode, [this] { return decode_router_.Pending(); });
  }
}

void DisaggregatedRun::FillOutcome(Outcome& outcome) const {
  outcome.prefill_worker_seconds = WorkerSeconds(prefill_.workers, now_ms());
  outcome.decode_worker_seconds = WorkerSeconds(decode_.workers, now_ms());
  outcome.prefill_gpus_per_worker = prefill_.settings->gpus();
  outcome.decode_gpus_per_worker = decode_.settings->gpus();
}

Result<void> DisaggregatedRun::Drain(double now_ms) {
  for (bool first = true;; first = false) {
    BeginRound(first);
    bool changed = CompleteDue(now_ms);
    changed = handoffs_.Act(now_ms) || changed;
    if (failed_) {
      return std::unexpected(*failed_);
    }
    changed = ReleaseArrivals(now_ms) || changed;
    for (const std::uint32_t place : std::exchange(set_aside_, {})) {
      MarkRunnable(place);
    }
    DYNO_TRY(const bool prefill_ended, StartPool(prefill_, now_ms));
    DYNO_TRY(const bool decode_ended, StartPool(decode_, now_ms));
    TakeTickAt(now_ms);
    if (!changed && !prefill_ended && !decode_ended && !handoffs_.HasActions()) {
      return {};
    }
  }
}

bool DisaggregatedRun::ReleaseArrivals(double now_ms) {
  bool changed = false;
  workload::Request request;
  while (NextArrival(now_ms, request)) {
    handoffs_.Submit(request, workload::kNone);
    changed = true;
  }
  return changed;
}

Result<void> DisaggregatedRun::Place(Pool pool, const workload::Request& request,
                                     std::uint32_t /*rank*/, double now_ms,
                                     std::vector<router::Decision>& made) {
  PoolRouter& router = RouterOf(pool);
  DYNO_TRY_VOID(router.Place(request, now_ms));
  router.TakeDecisions(made);
  return {};
}

void DisaggregatedRun::PrefillDone(std::uint32_t request, double now_ms,
                                   std::vector<router::Decision>& made) {
  prefill_router_.PrefillDone(request, now_ms);
  prefill_router_.TakeDecisions(made);
}

void DisaggregatedRun::LeaveRouter(Pool pool, std::uint32_t request, double now_ms,
                                   std::vector<router::Decision>& made) {
  PoolRouter& router = RouterOf(pool);
  router.Terminal(request, now_ms);
  router.TakeDecisions(made);
}

// Brings a planned run of passes to its current pass.
void DisaggregatedRun::Settle(std::uint32_t place, double now_ms) {
  worker(place).Touch(now_ms, Joins(place));
  Requeue(place);
}

void DisaggregatedRun::SubmitPrompt(const HandoffSide& source, const workload::Request& prompt,
                                    double now_ms) {
  worker(source.place).Submit(prompt, source_, source.rank, now_ms, Joins(source.place));
  Requeue(source.place);
}

bool DisaggregatedRun::QueueReservation(const HandoffSide& destination,
                                        const workload::Request& request, double now_ms,
                                        engine::Rejection& why) {
  const std::uint32_t place = destination.place;
  const bool accepted =
      worker(place).QueueReservation(destination.rank, request, source_, now_ms, Joins(place), why);
  if (accepted) {
    recorder_.OnDestination(request.id,
                            (place - decode_.first) * decode_.settings->dp_size + destination.rank);
  }
  Requeue(place);
  return accepted;
}

std::optional<engine::Grant> DisaggregatedRun::TryReserve(const HandoffSide& destination) {
  return worker(destination.place).TryReserve(destination.rank);
}

void DisaggregatedRun::Activate(const HandoffSide& destination, std::uint32_t request) {
  worker(destination.place).Activate(destination.rank, request);
}

void DisaggregatedRun::ReleaseSource(const HandoffSide& source, std::uint32_t request,
                                     double now_ms) {
  worker(source.place).ReleaseSource(source.rank, request);
  CollectCommandEvents(source.place, now_ms);
}

void DisaggregatedRun::CancelSource(const HandoffSide& source, std::uint32_t request,
                                    double now_ms) {
  worker(source.place).CancelSource(source.rank, request);
  CollectCommandEvents(source.place, now_ms);
}

void DisaggregatedRun::CancelDestination(const HandoffSide& destination, std::uint32_t request) {
  worker(destination.place).CancelDestination(destination.rank, request);
}

void DisaggregatedRun::OnRefused(std::uint32_t request, const engine::Rejection& why,
                                 workload::TerminalStatus status, double now_ms) {
  recorder_.OnRejected(request, now_ms, why, status);
  OnTerminal(request, now_ms, status, 0);
}

void DisaggregatedRun::ApplyPass(std::uint32_t place, double now_ms) {
  engine::Worker& w = worker(place);
  handoffs_.PassEnded(place);
  for (std::uint32_t rank = 0; rank < w.ranks(); ++rank) {
    const engine::PassEffects& effects = w.Effects(rank);
    recorder_.OnPrefill(place, w.passes(), effects.committed_prefill_tokens);
    for (const engine::Signal& signal : effects.signals) {
      ApplySignal(signal, effects, place, now_ms);
    }
  }
  for (std::uint32_t rank = 0; rank < w.ranks(); ++rank) {
    handoffs_.Offer(place, rank, w.Effects(rank), now_ms);
  }
  recorder_.MaybeSettle(place, w);
}

void DisaggregatedRun::ApplySignal(const engine::Signal& signal, const engine::PassEffects& effects,
                                   std::uint32_t place, double now_ms) {
  if (signal.kind == engine::Signal::Kind::kFirstToken || !handoffs_.Open(signal.request)) {
    return;
  }
  const bool finished = signal.kind == engine::Signal::Kind::kFinished;
  if (finished) {
    const engine::TokenTrack& track = effects.finished[signal.index];
    recorder_.OnCompleted(signal.request, now_ms, track, place, worker(place));
    if (telemetry_) {
      telemetry_->OnCompleted(recorder_.record(signal.request));
    }
    OnTerminal(signal.request, now_ms, workload::TerminalStatus::kCompleted, track.tokens);
  } else {
    recorder_.OnRejected(signal.request, now_ms, effects.rejections[signal.index],
                         workload::TerminalStatus::kRejected);
    OnTerminal(signal.request, now_ms, workload::TerminalStatus::kRejected, 0);
  }
  handoffs_.Ended(signal.request, finished, now_ms);
}

void DisaggregatedRun::OnTerminal(std::uint32_t request, double now_ms,
                                  workload::TerminalStatus status, std::uint64_t tokens) {
  if (telemetry_ && status != workload::TerminalStatus::kCompleted) {
    telemetry_->OnOtherTerminal();
  }
  source_.OnTerminal(request, now_ms, status, tokens);
}

bool DisaggregatedRun::Unstick() {
  for (std::uint32_t place = decode_.first; place < decode_.first + decode_.workers; ++place) {
    engine::Worker& w = worker(place);
    for (std::uint32_t rank = 0; rank < w.ranks(); ++rank) {
      if (!w.ActWhenStuck(rank)) {
        continue;
      }
      ApplyPass(place, now_ms());
      MarkRunnable(place);
      return true;
    }
  }
  return false;
}

}  // namespace dynosim::sim
