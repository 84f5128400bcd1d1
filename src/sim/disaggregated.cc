// SPDX-License-Identifier: Apache-2.0
#include "sim/disaggregated.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/result.h"
#include "engine/effects.h"
#include "engine/settings.h"
#include "engine/worker.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "sim/run.h"
#include "sim/run_loop.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::sim {

namespace {

double WorkerSeconds(std::uint32_t workers, double end_ms) {
  return static_cast<double>(workers) * end_ms / 1000.0;
}

std::uint64_t GpusOf(const engine::EngineSettings& settings) {
  return std::uint64_t{settings.tensor_parallel_size} * settings.dp_size;
}

}  // namespace

DisaggregatedRun::DisaggregatedRun(const scenario::Scenario& scenario,
                                   workload::RequestSource& source, const RunHooks& hooks)
    : RunLoop(scenario, source, hooks),
      prefill_{&*scenario.prefill_engine, Pool::kPrefill, 0, scenario.num_prefill_workers, 0},
      decode_{&*scenario.decode_engine, Pool::kDecode, scenario.num_prefill_workers,
              scenario.num_decode_workers, 0},
      source_first_(scenario.prefill_engine->backend != engine::Backend::kSglang),
      handoffs_(source.RequestCount()),
      deferred_(scenario.num_prefill_workers + scenario.num_decode_workers) {
  for (const PoolState* pool : {&prefill_, &decode_}) {
    for (std::uint32_t id = 0; id < pool->workers; ++id) {
      AddWorker(*pool->settings, pool->pool, id);
    }
  }
}

void DisaggregatedRun::FillOutcome(Outcome& outcome) const {
  outcome.prefill_worker_seconds = WorkerSeconds(prefill_.workers, now_ms());
  outcome.decode_worker_seconds = WorkerSeconds(decode_.workers, now_ms());
  outcome.prefill_gpus_per_worker = GpusOf(*prefill_.settings);
  outcome.decode_gpus_per_worker = GpusOf(*decode_.settings);
}

std::optional<double> DisaggregatedRun::NextTopologyEventMs() const {
  if (transfers_.empty()) {
    return std::nullopt;
  }
  return transfers_.TopMs();
}

Result<void> DisaggregatedRun::Drain(double now_ms) {
  bool first_round = true;
  while (true) {
    bool changed = CompleteDue(now_ms);
    changed = FinishTransfers(now_ms) || changed;
    changed = RunActions(now_ms, first_round) || changed;
    changed = ReleaseArrivals(now_ms) || changed;
    for (const std::uint32_t place : std::exchange(set_aside_, {})) {
      MarkRunnable(place);
    }
    DYNO_TRY(const bool prefill_ended, StartPool(prefill_, now_ms));
    DYNO_TRY(const bool decode_ended, StartPool(decode_, now_ms));
    TakeTickAt(now_ms);
    if (!changed && !prefill_ended && !decode_ended && actions_.empty()) {
      return {};
    }
    first_round = false;
  }
}

bool DisaggregatedRun::CompleteDue(double now_ms) {
  bool changed = false;
  while (!queue_.empty() && queue_.TopMs() == now_ms) {
    const std::uint32_t place = queue_.TopWorker();
    queue_.Pop();
    worker(place).Complete();
    ApplyPass(place, now_ms);
    MarkRunnable(place);
    changed = true;
  }
  return changed;
}

bool DisaggregatedRun::FinishTransfers(double now_ms) {
  bool changed = false;
  while (!transfers_.empty() && transfers_.TopMs() == now_ms) {
    Push(ActionKind::kActivate, transfers_.PopTop());
    changed = true;
  }
  return changed;
}

bool DisaggregatedRun::RunActions(double now_ms, bool first_round) {
  bool changed = false;
  while (!actions_.empty()) {
    const Action action = actions_.front();
    actions_.pop_front();
    Execute(action, now_ms, first_round);
    changed = true;
  }
  return changed;
}

bool DisaggregatedRun::ReleaseArrivals(double now_ms) {
  bool changed = false;
  workload::Request request;
  while (source_.Release(now_ms, request)) {
    changed = true;
    recorder_.OnArrival(request);
    if (telemetry_) {
      telemetry_->OnArrival();
    }
    Handoff& h = handoffs_[request.id];
    h.request = request;
    h.ordinal = released_++;
    Push(source_first_ ? ActionKind::kSubmitPrefill : ActionKind::kReserveDestination, request.id);
  }
  return changed;
}

// Starts passes, lowest worker first. True if one with an effect has ended already. A worker whose
// pass took no time and did nothing waits for the next round.
Result<bool> DisaggregatedRun::StartPool(const PoolState& pool, double now_ms) {
  bool ended = false;
  while (const std::optional<std::uint32_t> place =
             TakeRunnable(pool.first, pool.first + pool.workers)) {
    engine::Worker& w = worker(*place);
    while (w.CanStart()) {
      recorder_.OnPassStart(*place, w.passes() + 1, now_ms);
      w.Start(now_ms);
      if (w.Failed()) {
        return std::unexpected(TimingFailed(w, now_ms));
      }
      for (std::uint32_t rank = 0; rank < w.ranks(); ++rank) {
        for (const engine::Admission& admission : w.Effects(rank).admissions) {
          recorder_.OnAdmitted(admission.request, pool.pool, now_ms, admission.reused_tokens);
        }
      }
      if (w.NextMs() > now_ms) {
        queue_.Set(*place, w.NextMs());
        break;
      }
      const bool effect = w.HadEffect();
      w.Complete();
      ApplyPass(*place, now_ms);
      if (!effect) {
        set_aside_.push_back(*place);
        break;
      }
      ended = true;
    }
  }
  return ended;
}

void DisaggregatedRun::Execute(const Action& action, double now_ms, bool first_round) {
  Handoff& h = handoffs_[action.request];
  switch (action.kind) {
    case ActionKind::kSubmitPrefill:
      if (!h.terminal) {
        SubmitPrefill(h, now_ms, first_round);
      }
      return;
    case ActionKind::kReserveDestination:
      if (!h.terminal) {
        ReserveDestination(h, now_ms, first_round);
      }
      return;
    case ActionKind::kStartTransfer:
      if (!h.terminal) {
        StartTransfer(h, now_ms);
      }
      return;
    case ActionKind::kActivate:
      if (h.terminal || !IdleOrDefer(h.destination_place, action, now_ms, first_round)) {
        return;
      }
      worker(h.destination_place).Activate(h.destination_rank, action.request);
      if (RequestDetail* d = recorder_.detail(action.request)) {
        d->destination_activated_ms = now_ms;
      }
      Push(ActionKind::kReleaseSource, action.request);
      Attempt(h.destination_place, h.destination_rank, now_ms);
      return;
    case ActionKind::kReleaseSource:
      if (!IdleOrDefer(h.source_place, action, now_ms, first_round)) {
        return;
      }
      worker(h.source_place).ReleaseSource(h.source_rank, action.request);
      if (RequestDetail* d = recorder_.detail(action.request)) {
        d->source_released_ms = now_ms;
      }
      return;
    case ActionKind::kCancelSource:
      if (!IdleOrDefer(h.source_place, action, now_ms, first_round)) {
        return;
      }
      worker(h.source_place).CancelSource(h.source_rank, action.request);
      return;
    case ActionKind::kCancelDestination:
      if (!IdleOrDefer(h.destination_place, action, now_ms, first_round)) {
        return;
      }
      worker(h.destination_place).CancelDestination(h.destination_rank, action.request);
      Attempt(h.destination_place, h.destination_rank, now_ms);
      return;
  }
}

// A command that needs an idle worker: brings a planned run to its current pass; if that is still
// in flight, the action waits for its end.
bool DisaggregatedRun::IdleOrDefer(std::uint32_t place, const Action& action, double now_ms,
                                   bool first_round) {
  engine::Worker& w = worker(place);
  w.Touch(now_ms, first_round);
  Requeue(place);
  if (!w.Busy()) {
    return true;
  }
  deferred_[place].push_back(action);
  return false;
}

DisaggregatedRun::Placement DisaggregatedRun::Place(PoolState& pool, std::uint32_t request) {
  const std::uint32_t dp_size = pool.settings->dp_size;
  const std::uint32_t scheduler = pool.next % (pool.workers * dp_size);
  pool.next = scheduler + 1;
  const std::uint32_t id = scheduler / dp_size;
  recorder_.OnRouted(
      request,
      {.pool = pool.pool, .worker = id, .scheduler = scheduler, .dp_rank = scheduler % dp_size});
  return {pool.first + id, scheduler % dp_size};
}

void DisaggregatedRun::SubmitPrefill(Handoff& h, double now_ms, bool first_round) {
  const Placement target = Place(prefill_, h.request.id);
  h.source_place = target.place;
  h.source_rank = target.rank;
  workload::Request prompt = h.request;
  prompt.output_tokens = std::min<std::uint64_t>(1, prompt.output_tokens);
  worker(target.place).Submit(prompt, source_, target.rank, now_ms, first_round);
  Requeue(target.place);
}

void DisaggregatedRun::ReserveDestination(Handoff& h, double now_ms, bool first_round) {
  const Placement target = Place(decode_, h.request.id);
  engine::Worker& w = worker(target.place);
  engine::Rejection why;
  if (!w.QueueReservation(target.rank, h.request, source_, now_ms, first_round, why)) {
    Requeue(target.place);
    const bool refused = why.reason == engine::Rejection::Reason::kContextLimit ||
                         why.reason == engine::Rejection::Reason::kPromptOverPool;
    const auto status =
        refused ? workload::TerminalStatus::kFailed : workload::TerminalStatus::kRejected;
    recorder_.OnRejected(h.request.id, now_ms, why, status);
    OnTerminal(h, now_ms, status, 0);
    CleanUp(h);
    return;
  }
  h.destination_place = target.place;
  h.destination_rank = target.rank;
  recorder_.OnDestination(h.request.id,
                          (target.place - decode_.first) * decode_.settings->dp_size + target.rank);
  Requeue(target.place);
  if (!w.Busy()) {
    Attempt(target.place, target.rank, now_ms);
  }
}

void DisaggregatedRun::Attempt(std::uint32_t place, std::uint32_t rank, double now_ms) {
  const std::optional<engine::Grant> grant = worker(place).TryReserve(rank);
  if (!grant) {
    return;
  }
  Handoff& h = handoffs_[grant->request];
  h.reserved = true;
  h.fresh_blocks = grant->fresh_blocks;
  if (RequestDetail* d = recorder_.detail(grant->request)) {
    d->destination_reserved_ms = now_ms;
  }
  Push(source_first_ ? ActionKind::kStartTransfer : ActionKind::kSubmitPrefill, grant->request);
}

void DisaggregatedRun::OnHeld(std::uint32_t request, double now_ms) {
  Handoff& h = handoffs_[request];
  if (h.terminal) {
    return;
  }
  h.held = true;
  if (RequestDetail* d = recorder_.detail(request)) {
    d->source_held_ms = now_ms;
  }
  Push(source_first_ ? ActionKind::kReserveDestination : ActionKind::kStartTransfer, request);
}

// Chapter 30, section 6.3: the prefill engine's values count, evaluated left to right.
double DisaggregatedRun::TransferMs(const Handoff& h) const {
  const engine::EngineSettings& s = *prefill_.settings;
  if (!s.kv_transfer_bytes_per_token || s.kv_transfer_bandwidth_gbps.value_or(0.0) == 0.0) {
    return 0.0;
  }
  const std::uint64_t tokens = s.kv_transfer_timing == engine::TransferTiming::kFullPrompt
                                   ? h.request.prompt_tokens
                                   : h.fresh_blocks * s.block_size;
  return static_cast<double>(tokens) * static_cast<double>(*s.kv_transfer_bytes_per_token) /
         (*s.kv_transfer_bandwidth_gbps * 1e9) * 1000.0;
}

void DisaggregatedRun::StartTransfer(Handoff& h, double now_ms) {
  const double delay_ms = TransferMs(h);
  if (RequestDetail* d = recorder_.detail(h.request.id)) {
    d->transfer_start_ms = now_ms;
    d->transfer_end_ms = now_ms + delay_ms;
  }
  if (delay_ms > 0.0) {
    transfers_.Push(now_ms + delay_ms, h.ordinal, h.request.id);
  } else {
    Push(ActionKind::kActivate, h.request.id);
  }
}

void DisaggregatedRun::ApplyPass(std::uint32_t place, double now_ms) {
  engine::Worker& w = worker(place);
  for (const Action& action : std::exchange(deferred_[place], {})) {
    actions_.push_back(action);
  }
  for (std::uint32_t rank = 0; rank < w.ranks(); ++rank) {
    const engine::PassEffects& effects = w.Effects(rank);
    recorder_.OnPrefill(place, w.passes(), effects.committed_prefill_tokens);
    for (const engine::Signal& signal : effects.signals) {
      ApplySignal(signal, effects, place, now_ms);
    }
  }
  for (std::uint32_t rank = 0; rank < w.ranks(); ++rank) {
    for (const std::uint32_t request : w.Effects(rank).held) {
      OnHeld(request, now_ms);
    }
    if (!InPrefill(place)) {
      Attempt(place, rank, now_ms);
    }
  }
  recorder_.MaybeSettle(place, w);
}

void DisaggregatedRun::ApplySignal(const engine::Signal& signal, const engine::PassEffects& effects,
                                   std::uint32_t place, double now_ms) {
  Handoff& h = handoffs_[signal.request];
  if (h.terminal) {
    return;
  }
  switch (signal.kind) {
    case engine::Signal::Kind::kFirstToken:
      return;
    case engine::Signal::Kind::kFinished: {
      const engine::TokenTrack& track = effects.finished[signal.index];
      recorder_.OnCompleted(signal.request, now_ms, track, place, worker(place));
      if (telemetry_) {
        telemetry_->OnCompleted(recorder_.record(signal.request));
      }
      OnTerminal(h, now_ms, workload::TerminalStatus::kCompleted, track.tokens);
      return;
    }
    case engine::Signal::Kind::kRejected:
      recorder_.OnRejected(signal.request, now_ms, effects.rejections[signal.index],
                           workload::TerminalStatus::kRejected);
      OnTerminal(h, now_ms, workload::TerminalStatus::kRejected, 0);
      CleanUp(h);
      return;
  }
}

void DisaggregatedRun::OnTerminal(Handoff& h, double now_ms, workload::TerminalStatus status,
                                  std::uint64_t tokens) {
  h.terminal = true;
  if (telemetry_ && status != workload::TerminalStatus::kCompleted) {
    telemetry_->OnOtherTerminal();
  }
  source_.OnTerminal(h.request.id, now_ms, status, tokens);
}

void DisaggregatedRun::CleanUp(const Handoff& h) {
  if (h.source_place != workload::kNone) {
    Push(ActionKind::kCancelSource, h.request.id);
  }
  if (h.destination_place != workload::kNone) {
    Push(ActionKind::kCancelDestination, h.request.id);
  }
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
