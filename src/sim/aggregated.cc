// SPDX-License-Identifier: Apache-2.0
#include "sim/aggregated.h"

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "engine/effects.h"
#include "engine/worker.h"
#include "router/round_robin.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "sim/run.h"
#include "sim/run_loop.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::sim {

AggregatedRun::AggregatedRun(const scenario::Scenario& scenario, workload::RequestSource& source,
                             const RunHooks& hooks)
    : RunLoop(scenario, source, hooks), placement_(scenario.num_workers, scenario.engine.dp_size) {
  for (std::uint32_t id = 0; id < scenario.num_workers; ++id) {
    AddWorker(scenario.engine, Pool::kAggregated, id);
  }
}

void AggregatedRun::FillOutcome(Outcome& outcome) const {
  outcome.decode_worker_seconds = static_cast<double>(scenario_.num_workers) * now_ms() / 1000.0;
  outcome.decode_gpus_per_worker =
      std::uint64_t{scenario_.engine.tensor_parallel_size} * scenario_.engine.dp_size;
}

Result<void> AggregatedRun::Drain(double now_ms) {
  bool first_round = true;
  while (true) {
    bool changed = CompleteDue(now_ms);
    changed = ReleaseArrivals(now_ms, first_round) || changed;
    DYNO_TRY(const bool ended, StartRunnable(now_ms));
    TakeTickAt(now_ms);
    if (!changed && !ended) {
      return {};
    }
    first_round = false;
  }
}

bool AggregatedRun::CompleteDue(double now_ms) {
  bool changed = false;
  while (!queue_.empty() && queue_.TopMs() == now_ms) {
    const std::uint32_t place = queue_.TopWorker();
    queue_.Pop();
    worker(place).Complete();
    ApplySignals(place, now_ms);
    MarkRunnable(place);
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
    worker(target.worker).Submit(request, source_, target.rank, now_ms, first_round);
    Requeue(target.worker);
  }
  return changed;
}

// Starts passes, lowest worker first. True if one of them has ended already.
Result<bool> AggregatedRun::StartRunnable(double now_ms) {
  bool ended = false;
  while (const std::optional<std::uint32_t> place = TakeRunnable(0, scenario_.num_workers)) {
    engine::Worker& w = worker(*place);
    std::uint64_t idle_passes = 0;
    while (w.CanStart()) {
      recorder_.OnPassStart(*place, w.passes() + 1, now_ms);
      w.Start(now_ms);
      if (w.Failed()) {
        return std::unexpected(TimingFailed(w, now_ms));
      }
      ApplyAdmissions(w, now_ms);
      if (w.NextMs() > now_ms) {
        queue_.Set(*place, w.NextMs());
        break;
      }
      ended = true;
      w.Complete();
      ApplySignals(*place, now_ms);
      idle_passes = w.HadEffect() ? 0 : idle_passes + 1;
      if (idle_passes > kIdlePassLimit) {
        return std::unexpected(NoProgress(w, now_ms));
      }
    }
  }
  return ended;
}

void AggregatedRun::ApplyAdmissions(const engine::Worker& worker, double now_ms) {
  for (std::uint32_t rank = 0; rank < worker.ranks(); ++rank) {
    for (const engine::Admission& admission : worker.Effects(rank).admissions) {
      recorder_.OnAdmitted(admission.request, Pool::kAggregated, now_ms, admission.reused_tokens);
    }
  }
}

void AggregatedRun::ApplySignals(std::uint32_t place, double now_ms) {
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
      return;
    case engine::Signal::Kind::kFinished: {
      const engine::TokenTrack& track = effects.finished[signal.index];
      recorder_.OnCompleted(signal.request, now_ms, track, place, worker(place));
      if (telemetry_) {
        telemetry_->OnCompleted(recorder_.record(signal.request));
      }
      source_.OnTerminal(signal.request, now_ms, workload::TerminalStatus::kCompleted,
                         track.tokens);
      return;
    }
    case engine::Signal::Kind::kRejected:
      recorder_.OnRejected(signal.request, now_ms, effects.rejections[signal.index],
                           workload::TerminalStatus::kRejected);
      if (telemetry_) {
        telemetry_->OnOtherTerminal();
      }
      source_.OnTerminal(signal.request, now_ms, workload::TerminalStatus::kRejected, 0);
      return;
  }
}

}  // namespace dynosim::sim
