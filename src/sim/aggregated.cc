// SPDX-License-Identifier: Apache-2.0
#include "sim/aggregated.h"

#include <cstdint>

#include "base/result.h"
#include "engine/effects.h"
#include "engine/worker.h"
#include "router/router.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "sim/pool_router.h"
#include "sim/run.h"
#include "sim/run_loop.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::sim {

AggregatedRun::AggregatedRun(const scenario::Scenario& scenario, workload::RequestSource& source,
                             const RunHooks& hooks)
    : RunLoop(scenario, source, hooks),
      router_(MakeRoutingContext(), Pool::kAggregated, scenario.engine, scenario.num_workers) {
  for (std::uint32_t id = 0; id < scenario.num_workers; ++id) {
    AddWorker(scenario.engine, Pool::kAggregated, id, router_);
  }
  if (telemetry_) {
    telemetry_->SetPending(Pool::kDecode, [this] { return router_.Pending(); });
  }
}

void AggregatedRun::FillOutcome(Outcome& outcome) const {
  outcome.decode_worker_seconds = static_cast<double>(scenario_.num_workers) * now_ms() / 1000.0;
  outcome.decode_gpus_per_worker = scenario_.engine.gpus();
}

Result<void> AggregatedRun::Drain(double now_ms) {
  for (bool first = true;; first = false) {
    BeginRound(first);
    const bool completed = CompleteDue(now_ms);
    DYNO_TRY(const bool released, ReleaseArrivals(now_ms));
    DYNO_TRY(const bool ended, StartWorkers(Pool::kAggregated, 0, scenario_.num_workers, now_ms));
    TakeTickAt(now_ms);
    if (!completed && !released && !ended) {
      return {};
    }
  }
}

Result<bool> AggregatedRun::ReleaseArrivals(double now_ms) {
  bool changed = false;
  workload::Request request;
  while (NextArrival(now_ms, request)) {
    changed = true;
    DYNO_TRY_VOID(router_.Place(request, now_ms));
    Dispatch(now_ms);
  }
  return changed;
}

void AggregatedRun::Dispatch(double now_ms) {
  if (!router_.HasDecisions()) {
    return;
  }
  router_.TakeDecisions(decisions_);
  for (const router::Decision& decision : decisions_) {
    const router::Target target = decision.target;
    worker(target.worker)
        .Submit(decision.request, source_, target.rank, now_ms, Joins(target.worker));
    Requeue(target.worker);
  }
}

void AggregatedRun::ApplyPass(std::uint32_t place, double now_ms) {
  engine::Worker& w = worker(place);
  for (std::uint32_t rank = 0; rank < w.ranks(); ++rank) {
    const engine::PassEffects& effects = w.Effects(rank);
    recorder_.OnPrefill(place, w.passes(), effects.committed_prefill_tokens);
    for (const engine::Signal& signal : effects.signals) {
      ApplySignal(signal, effects, place, now_ms);
    }
  }
  recorder_.MaybeSettle(place, w);
}

void AggregatedRun::ApplySignal(const engine::Signal& signal, const engine::PassEffects& effects,
                                std::uint32_t place, double now_ms) {
  switch (signal.kind) {
    case engine::Signal::Kind::kFirstToken:
      router_.PrefillDone(signal.request, now_ms);
      Dispatch(now_ms);
      return;
    case engine::Signal::Kind::kFinished: {
      const engine::TokenTrack& track = effects.finished[signal.index];
      recorder_.OnCompleted(signal.request, now_ms, track, place, worker(place));
      if (telemetry_) {
        telemetry_->OnCompleted(recorder_.record(signal.request));
      }
      source_.OnTerminal(signal.request, now_ms, workload::TerminalStatus::kCompleted,
                         track.tokens);
      router_.Terminal(signal.request, now_ms);
      Dispatch(now_ms);
      return;
    }
    case engine::Signal::Kind::kRejected:
      recorder_.OnRejected(signal.request, now_ms, effects.rejections[signal.index],
                           workload::TerminalStatus::kRejected);
      if (telemetry_) {
        telemetry_->OnOtherTerminal();
      }
      source_.OnTerminal(signal.request, now_ms, workload::TerminalStatus::kRejected, 0);
      router_.Terminal(signal.request, now_ms);
      Dispatch(now_ms);
      return;
  }
}

}  // namespace dynosim::sim
