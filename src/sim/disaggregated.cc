// SPDX-License-Identifier: Apache-2.0
#include "sim/disaggregated.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "engine/effects.h"
#include "engine/settings.h"
#include "engine/transfer.h"
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
      source_first_(scenario.prefill_engine->backend != engine::Backend::kSglang),
      handoffs_(source.InOrder() ? 0 : source.RequestCount()),
      deferred_(scenario.num_prefill_workers + scenario.num_decode_workers) {
  for (const PoolState* pool : {&prefill_, &decode_}) {
    for (std::uint32_t id = 0; id < pool->workers; ++id) {
      AddWorker(*pool->settings, pool->pool, id,
                pool == &prefill_ ? prefill_router_ : decode_router_);
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

std::optional<double> DisaggregatedRun::NextTopologyEventMs() const {
  if (transfers_.empty()) {
    return std::nullopt;
  }
  return transfers_.TopMs();
}

Result<void> DisaggregatedRun::Drain(double now_ms) {
  for (bool first = true;; first = false) {
    BeginRound(first);
    bool changed = CompleteDue(now_ms);
    changed = FinishTransfers(now_ms) || changed;
    DYNO_TRY(const bool acted, RunActions(now_ms));
    changed = acted || changed;
    changed = ReleaseArrivals(now_ms) || changed;
    for (const std::uint32_t place : std::exchange(set_aside_, {})) {
      MarkRunnable(place);
    }
    DYNO_TRY(const bool prefill_ended, StartPool(prefill_, now_ms));
    DYNO_TRY(const bool decode_ended, StartPool(decode_, now_ms));
    TakeTickAt(now_ms);
    if (!changed && !prefill_ended && !decode_ended && actions_.empty()) {
      Forget();
      return {};
    }
  }
}

bool DisaggregatedRun::FinishTransfers(double now_ms) {
  bool changed = false;
  while (!transfers_.empty() && transfers_.TopMs() == now_ms) {
    const std::uint32_t request = transfers_.PopTop();
    --Of(request).pending;
    Push(ActionKind::kActivate, request);
    changed = true;
  }
  return changed;
}

Result<bool> DisaggregatedRun::RunActions(double now_ms) {
  bool changed = false;
  while (!actions_.empty()) {
    const Action action = actions_.front();
    actions_.pop_front();
    --Of(action.request).pending;
    DYNO_TRY_VOID(Execute(action, now_ms));
    changed = true;
  }
  return changed;
}

bool DisaggregatedRun::ReleaseArrivals(double now_ms) {
  bool changed = false;
  workload::Request request;
  while (NextArrival(now_ms, request)) {
    changed = true;
    if (source_.InOrder()) {
      handoffs_.emplace_back();
    }
    Handoff& h = Of(request.id);
    h.request = request;
    h.ordinal = released_++;
    Push(source_first_ ? ActionKind::kSubmitPrefill : ActionKind::kReserveDestination, request.id);
  }
  return changed;
}

Result<void> DisaggregatedRun::Execute(const Action& action, double now_ms) {
  Handoff& h = Of(action.request);
  switch (action.kind) {
    case ActionKind::kSubmitPrefill:
      if (!h.terminal) {
        DYNO_TRY_VOID(prefill_router_.Place(h.request, now_ms));
        DispatchPrefills(now_ms);
      }
      return {};
    case ActionKind::kReserveDestination:
      return h.terminal ? Result<void>() : ReserveDestination(h, now_ms);
    case ActionKind::kStartTransfer:
      if (!h.terminal) {
        StartTransfer(h, now_ms);
      }
      return {};
    case ActionKind::kActivate:
      if (h.terminal || !IdleOrDefer(h.destination_place, action, now_ms)) {
        return {};
      }
      worker(h.destination_place).Activate(h.destination_rank, action.request);
      if (RequestDetail* d = recorder_.detail(action.request)) {
        d->destination_activated_ms = now_ms;
      }
      Push(ActionKind::kReleaseSource, action.request);
      Attempt(h.destination_place, h.destination_rank, now_ms);
      return {};
    case ActionKind::kReleaseSource:
    case ActionKind::kCancelSource:
      FreeSource(h, action, now_ms);
      return {};
    case ActionKind::kCancelDestination:
      if (!IdleOrDefer(h.destination_place, action, now_ms)) {
        return {};
      }
      worker(h.destination_place).CancelDestination(h.destination_rank, action.request);
      Attempt(h.destination_place, h.destination_rank, now_ms);
      return {};
  }
  return {};
}

void DisaggregatedRun::FreeSource(Handoff& h, const Action& action, double now_ms) {
  if (!IdleOrDefer(h.source_place, action, now_ms)) {
    return;
  }
  if (action.kind == ActionKind::kCancelSource) {
    worker(h.source_place).CancelSource(h.source_rank, action.request);
  } else {
    worker(h.source_place).ReleaseSource(h.source_rank, action.request);
    if (RequestDetail* d = recorder_.detail(action.request)) {
      d->source_released_ms = now_ms;
    }
  }
  CollectCommandEvents(h.source_place, now_ms);
  LeavePrefillRouter(h, now_ms);
}

// A command that needs an idle worker: brings a planned run to its current pass; if that is still
// in flight, the action waits for its end.
bool DisaggregatedRun::IdleOrDefer(std::uint32_t place, const Action& action, double now_ms) {
  engine::Worker& w = worker(place);
  w.Touch(now_ms, Joins(place));
  Requeue(place);
  if (!w.Busy()) {
    return true;
  }
  ++Of(action.request).pending;
  deferred_[place].push_back(action);
  return false;
}

void DisaggregatedRun::DispatchPrefills(double now_ms) {
  if (!prefill_router_.HasDecisions()) {
    return;
  }
  prefill_router_.TakeDecisions(decisions_);
  for (const router::Decision& decision : decisions_) {
    Handoff& h = Of(decision.request.id);
    h.source_place = prefill_.first + decision.target.worker;
    h.source_rank = decision.target.rank;
    h.in_prefill_router = true;
    workload::Request prompt = h.request;
    prompt.output_tokens = std::min<std::uint64_t>(1, prompt.output_tokens);
    worker(h.source_place).Submit(prompt, source_, h.source_rank, now_ms, Joins(h.source_place));
    Requeue(h.source_place);
  }
}

Result<void> DisaggregatedRun::ReserveDestination(Handoff& h, double now_ms) {
  DYNO_TRY_VOID(decode_router_.Place(h.request, now_ms));
  decode_router_.TakeDecisions(decisions_);
  DYNO_CHECK(decisions_.size() == 1);  // nothing queues in front of a decode pool
  const std::uint32_t place = decode_.first + decisions_.front().target.worker;
  const std::uint32_t rank = decisions_.front().target.rank;
  h.in_decode_router = true;
  engine::Worker& w = worker(place);
  engine::Rejection why;
  // A prompt beyond the context limit of the prefill pool ends there and needs no room for
  // output here.
  workload::Request request = h.request;
  const auto& context_limit = prefill_.settings->max_model_len;
  if (!source_first_ && context_limit && request.prompt_tokens >= *context_limit) {
    request.output_tokens = 0;
  }
  if (!w.QueueReservation(rank, request, source_, now_ms, Joins(place), why)) {
    Requeue(place);
    const bool refused = why.reason == engine::Rejection::Reason::kContextLimit ||
                         why.reason == engine::Rejection::Reason::kPromptOverPool;
    const auto status =
        refused ? workload::TerminalStatus::kFailed : workload::TerminalStatus::kRejected;
    recorder_.OnRejected(h.request.id, now_ms, why, status);
    OnTerminal(h, now_ms, status, 0);
    CleanUp(h);
    return {};
  }
  h.destination_place = place;
  h.destination_rank = rank;
  recorder_.OnDestination(h.request.id, (place - decode_.first) * decode_.settings->dp_size + rank);
  Requeue(place);
  if (!w.Busy()) {
    Attempt(place, rank, now_ms);
  }
  return {};
}

void DisaggregatedRun::LeavePrefillRouter(Handoff& h, double now_ms) {
  if (std::exchange(h.in_prefill_router, false)) {
    prefill_router_.Terminal(h.request.id, now_ms);
    DispatchPrefills(now_ms);
  }
}

void DisaggregatedRun::LeaveDecodeRouter(Handoff& h, double now_ms) {
  if (std::exchange(h.in_decode_router, false)) {
    decode_router_.Terminal(h.request.id, now_ms);
  }
}

void DisaggregatedRun::Attempt(std::uint32_t place, std::uint32_t rank, double now_ms) {
  const std::optional<engine::Grant> grant = worker(place).TryReserve(rank);
  if (!grant) {
    return;
  }
  Handoff* const found = Find(grant->request);
  if (found == nullptr) {
    return;
  }
  Handoff& h = *found;
  h.reserved = true;
  h.fresh_blocks = grant->fresh_blocks;
  if (RequestDetail* d = recorder_.detail(grant->request)) {
    d->destination_reserved_ms = now_ms;
  }
  Push(source_first_ ? ActionKind::kStartTransfer : ActionKind::kSubmitPrefill, grant->request);
}

void DisaggregatedRun::OnHeld(std::uint32_t request, double now_ms) {
  Handoff* const found = Find(request);
  if (found == nullptr || found->terminal) {
    return;
  }
  Handoff& h = *found;
  h.held = true;
  if (RequestDetail* d = recorder_.detail(request)) {
    d->source_held_ms = now_ms;
  }
  prefill_router_.PrefillDone(request, now_ms);
  DispatchPrefills(now_ms);
  Push(source_first_ ? ActionKind::kReserveDestination : ActionKind::kStartTransfer, request);
}

void DisaggregatedRun::StartTransfer(Handoff& h, double now_ms) {
  const double delay_ms = engine::TransferMs(*prefill_.settings, *decode_.settings,
                                             h.request.prompt_tokens, h.fresh_blocks);
  if (RequestDetail* d = recorder_.detail(h.request.id)) {
    d->transfer_start_ms = now_ms;
    d->transfer_end_ms = now_ms + delay_ms;
  }
  if (delay_ms > 0.0) {
    ++h.pending;
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
  Handoff* const found = Find(signal.request);
  if (found == nullptr || found->terminal) {
    return;
  }
  Handoff& h = *found;
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
  LeaveDecodeRouter(h, now_ms);
}

void DisaggregatedRun::Forget() {
  if (!source_.InOrder()) {
    return;
  }
  while (!handoffs_.empty() && handoffs_.front().Over()) {
    handoffs_.pop_front();
    ++forgotten_;
  }
}

void DisaggregatedRun::CleanUp(const Handoff& h) {
  prefill_router_.CancelPending(h.request.id);
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
