// SPDX-License-Identifier: Apache-2.0
#include "live/handoff_coordinator.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/effects.h"
#include "engine/kv_event_buffer.h"
#include "engine/settings.h"
#include "engine/transfer.h"
#include "kv/events.h"
#include "live/router_setup.h"
#include "live/worker_driver.h"
#include "router/registry.h"
#include "router/router.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::live {

using Step = HandoffListener::Step;
using workload::TerminalStatus;

HandoffCoordinator::HandoffCoordinator(const HandoffOptions& options,
                                       const workload::RequestSource& source,
                                       HandoffListener& listener)
    : options_(options),
      source_(source),
      listener_(listener),
      source_first_(options.prefill.backend != engine::Backend::kSglang),
      deferred_(options.prefill_workers + options.decode_workers) {
  const auto make = [&](const engine::EngineSettings& settings, std::uint32_t workers,
                        router::PoolRole role) {
    router::PoolShape shape = ShapeOf(settings, workers);
    shape.id_mask = options_.id_mask;
    return Pool{.settings = &settings,
                .first = role == router::PoolRole::kPrefill ? 0 : options_.prefill_workers,
                .shape = shape,
                .router = router::MakeRouter(RouterOf(options_.router, settings), shape, role)};
  };
  prefill_ = make(options_.prefill, options_.prefill_workers, router::PoolRole::kPrefill);
  decode_ = make(options_.decode, options_.decode_workers, router::PoolRole::kDecode);
}

HandoffCoordinator::Handoff* HandoffCoordinator::Find(std::uint32_t request) {
  const auto found = handoffs_.find(request);
  return found == handoffs_.end() ? nullptr : &found->second;
}

bool HandoffCoordinator::Open(std::uint32_t request) const {
  const auto found = handoffs_.find(request);
  return found != handoffs_.end() && !found->second.terminal;
}

std::vector<std::uint32_t> HandoffCoordinator::InFlight() const {
  std::vector<std::uint32_t> out;
  for (const auto& [request, handoff] : handoffs_) {
    if (!handoff.terminal) {
      out.push_back(request);
    }
  }
  std::ranges::sort(out);
  return out;
}

void HandoffCoordinator::Submit(const workload::Request& request, std::uint32_t rank) {
  Handoff& h = handoffs_[request.id];
  h = {.request = request, .ordinal = submitted_++, .wanted_rank = rank};
  ++open_;
  Push(source_first_ ? ActionKind::kSubmitPrefill : ActionKind::kReserveDestination, request.id);
}

std::optional<double> HandoffCoordinator::NextMs(double now_ms) const {
  if (!actions_.empty()) {
    return now_ms;
  }
  return transfers_.empty() ? std::nullopt : std::optional(transfers_.TopMs());
}

bool HandoffCoordinator::Act(double now_ms) {
  bool changed = false;
  while (!transfers_.empty() && transfers_.TopMs() <= now_ms) {
    Push(ActionKind::kActivate, transfers_.PopTop());
  }
  while (!actions_.empty()) {
    const Action action = actions_.front();
    actions_.pop_front();
    Execute(action, now_ms);
    changed = true;
  }
  return changed;
}

void HandoffCoordinator::Execute(const Action& action, double now_ms) {
  Handoff* found = Find(action.request);
  if (found == nullptr) {
    return;  // canceled meanwhile
  }
  Handoff& h = *found;
  switch (action.kind) {
    case ActionKind::kSubmitPrefill:
      if (!h.terminal) {
        SubmitPrefill(h, now_ms);
      }
      return;
    case ActionKind::kReserveDestination:
      if (!h.terminal) {
        ReserveDestination(h, now_ms);
      }
      return;
    case ActionKind::kStartTransfer:
      if (!h.terminal) {
        StartTransfer(h, now_ms);
      }
      return;
    case ActionKind::kActivate:
      if (h.terminal || !IdleOrDefer(h.destination.place, action)) {
        return;
      }
      drivers_[h.destination.place]->Activate(action.request, h.destination.rank);
      listener_.OnStep(Step::kDestinationActivated, action.request, now_ms, now_ms);
      Push(ActionKind::kReleaseSource, action.request);
      Attempt(h.destination.place, h.destination.rank, now_ms);
      return;
    case ActionKind::kReleaseSource:
    case ActionKind::kCancelSource:
      FreeSource(h, action, now_ms);
      return;
    case ActionKind::kCancelDestination:
      if (!h.destination.holds || !IdleOrDefer(h.destination.place, action)) {
        return;
      }
      drivers_[h.destination.place]->CancelDestination(action.request, h.destination.rank);
      h.destination.holds = false;
      Attempt(h.destination.place, h.destination.rank, now_ms);
      MaybeClose(h);
      return;
  }
}

bool HandoffCoordinator::IdleOrDefer(std::uint32_t place, const Action& action) {
  if (!drivers_[place]->NextMs()) {
    return true;
  }
  deferred_[place].push_back(action);
  return false;
}

void HandoffCoordinator::SubmitPrefill(Handoff& h, double now_ms) {
  h.source.queued = true;
  const auto placed = prefill_.router->Place(
      {.request = h.request, .source = source_, .forced = {}}, now_ms, prefill_.decisions);
  if (!placed) {
    h.source.queued = false;
    listener_.OnUnrouted(h.request.id, placed.error(), now_ms);
    OnTerminal(h, now_ms);
    CleanUp(h);
    MaybeClose(h);
    return;
  }
  DispatchPrefills(now_ms);
}

void HandoffCoordinator::DispatchPrefills(double now_ms) {
  for (const router::Decision& decision : std::exchange(prefill_.decisions, {})) {
    Handoff& h = *Find(decision.request.id);
    h.source = {.place = prefill_.first + decision.target.worker,
                .rank = decision.target.rank,
                .routed = true,
                .holds = true};
    listener_.OnRouted(HandoffPool::kPrefill, decision, prefill_.shape, now_ms);
    workload::Request prompt = h.request;
    prompt.output_tokens = std::min<std::uint64_t>(1, prompt.output_tokens);
    drivers_[h.source.place]->Submit(prompt, h.source.rank, now_ms);
  }
}

void HandoffCoordinator::ReserveDestination(Handoff& h, double now_ms) {
  std::optional<router::Target> forced;
  if (h.wanted_rank != workload::kNone) {
    forced = router::Target{next_forced_++ % decode_.shape.workers, h.wanted_rank};
  }
  const auto placed = decode_.router->Place(
      {.request = h.request, .source = source_, .forced = forced}, now_ms, decode_.decisions);
  if (!placed || decode_.decisions.empty()) {
    listener_.OnUnrouted(
        h.request.id, placed ? Error{ErrorKind::kFailed, "", "no decode worker"} : placed.error(),
        now_ms);
    OnTerminal(h, now_ms);
    CleanUp(h);
    MaybeClose(h);
    return;
  }
  const router::Decision decision = std::exchange(decode_.decisions, {}).front();
  h.destination = {.place = decode_.first + decision.target.worker,
                   .rank = decision.target.rank,
                   .routed = true};
  listener_.OnRouted(HandoffPool::kDecode, decision, decode_.shape, now_ms);
  // A prompt beyond the context limit of the prefill pool ends there and needs no room for output
  // here.
  workload::Request request = h.request;
  const auto& limit = prefill_.settings->max_model_len;
  if (!source_first_ && limit && request.prompt_tokens >= *limit) {
    request.output_tokens = 0;
  }
  WorkerDriver& driver = *drivers_[h.destination.place];
  engine::Rejection why;
  if (!driver.QueueReservation(request, h.destination.rank, now_ms, why)) {
    const bool refused = why.reason == engine::Rejection::Reason::kContextLimit ||
                         why.reason == engine::Rejection::Reason::kPromptOverPool;
    listener_.OnRefused(h.request.id, why,
                        refused ? TerminalStatus::kFailed : TerminalStatus::kRejected, now_ms);
    OnTerminal(h, now_ms);
    CleanUp(h);
    MaybeClose(h);
    return;
  }
  h.destination.holds = true;
  if (!driver.NextMs()) {
    Attempt(h.destination.place, h.destination.rank, now_ms);
  }
}

void HandoffCoordinator::Attempt(std::uint32_t place, std::uint32_t rank, double now_ms) {
  const std::optional<engine::Grant> grant = drivers_[place]->TryReserve(rank);
  Handoff* h = grant ? Find(grant->request) : nullptr;
  if (h == nullptr) {
    return;
  }
  h->fresh_blocks = grant->fresh_blocks;
  listener_.OnStep(Step::kDestinationReserved, grant->request, now_ms, now_ms);
  Push(source_first_ ? ActionKind::kStartTransfer : ActionKind::kSubmitPrefill, grant->request);
}

void HandoffCoordinator::OnHeld(std::uint32_t request, double now_ms) {
  if (!Open(request)) {
    return;
  }
  listener_.OnStep(Step::kSourceHeld, request, now_ms, now_ms);
  prefill_.router->PrefillDone(request, now_ms, prefill_.decisions);
  DispatchPrefills(now_ms);
  Push(source_first_ ? ActionKind::kReserveDestination : ActionKind::kStartTransfer, request);
}

void HandoffCoordinator::StartTransfer(Handoff& h, double now_ms) {
  const double delay_ms = engine::TransferMs(*prefill_.settings, *decode_.settings,
                                             h.request.prompt_tokens, h.fresh_blocks);
  listener_.OnStep(Step::kTransferStarted, h.request.id, now_ms, now_ms + delay_ms);
  if (delay_ms > 0.0) {
    transfers_.Push(now_ms + delay_ms, h.ordinal, h.request.id);
  } else {
    Push(ActionKind::kActivate, h.request.id);
  }
}

void HandoffCoordinator::FreeSource(Handoff& h, const Action& action, double now_ms) {
  if (!h.source.holds || !IdleOrDefer(h.source.place, action)) {
    return;
  }
  WorkerDriver& driver = *drivers_[h.source.place];
  if (action.kind == ActionKind::kCancelSource) {
    driver.CancelSource(action.request, h.source.rank);
  } else {
    driver.ReleaseSource(action.request, h.source.rank);
    listener_.OnStep(Step::kSourceReleased, action.request, now_ms, now_ms);
  }
  h.source.holds = false;
  LeavePrefillRouter(h, now_ms);
  MaybeClose(h);
}

void HandoffCoordinator::LeavePrefillRouter(Handoff& h, double now_ms) {
  if (std::exchange(h.source.routed, false)) {
    prefill_.router->Terminal(h.request.id, now_ms, prefill_.decisions);
    DispatchPrefills(now_ms);
  }
}

void HandoffCoordinator::LeaveDecodeRouter(Handoff& h, double now_ms) {
  if (std::exchange(h.destination.routed, false)) {
    decode_.router->Terminal(h.request.id, now_ms, decode_.decisions);
  }
}

void HandoffCoordinator::OnTerminal(Handoff& h, double now_ms) {
  h.terminal = true;
  --open_;
  LeaveDecodeRouter(h, now_ms);
}

void HandoffCoordinator::CleanUp(Handoff& h) {
  if (std::exchange(h.source.queued, false)) {
    prefill_.router->CancelPending(h.request.id);
  }
  if (h.source.holds) {
    Push(ActionKind::kCancelSource, h.request.id);
  }
  if (h.destination.holds) {
    Push(ActionKind::kCancelDestination, h.request.id);
  }
}

void HandoffCoordinator::MaybeClose(Handoff& h) {
  if (h.terminal && !h.source.holds && !h.destination.holds) {
    const std::uint32_t request = h.request.id;
    handoffs_.erase(request);
    listener_.OnClosed(request);
  }
}

void HandoffCoordinator::Cancel(std::uint32_t request, double now_ms) {
  Handoff* found = Find(request);
  if (found == nullptr || found->terminal) {
    return;
  }
  Handoff& h = *found;
  OnTerminal(h, now_ms);
  if (std::exchange(h.source.queued, false)) {
    prefill_.router->CancelPending(request);
  }
  if (std::exchange(h.source.holds, false)) {
    drivers_[h.source.place]->Cancel(request, h.source.rank, now_ms);
    LeavePrefillRouter(h, now_ms);
  }
  if (std::exchange(h.destination.holds, false)) {
    WorkerDriver& driver = *drivers_[h.destination.place];
    driver.Cancel(request, h.destination.rank, now_ms);
    if (!driver.NextMs()) {
      Attempt(h.destination.place, h.destination.rank, now_ms);
    }
  }
  MaybeClose(h);
}

void HandoffCoordinator::OnRankPass(std::uint32_t place, const RankPass& pass, double now_ms) {
  if (pass.rank == 0) {
    for (const Action& action : std::exchange(deferred_[place], {})) {
      actions_.push_back(action);
    }
  }
  for (const engine::Signal& signal : pass.effects.signals) {
    Handoff* h = Find(signal.request);
    if (h == nullptr || h->terminal || signal.kind == engine::Signal::Kind::kFirstToken) {
      continue;
    }
    OnTerminal(*h, now_ms);
    if (signal.kind == engine::Signal::Kind::kFinished) {
      h->destination.holds = false;
    } else {
      CleanUp(*h);
    }
    MaybeClose(*h);
  }
}

void HandoffCoordinator::OnPassEnd(std::uint32_t place, double now_ms) {
  const engine::Worker& worker = drivers_[place]->worker();
  for (std::uint32_t rank = 0; rank < worker.ranks(); ++rank) {
    for (const std::uint32_t request : worker.Effects(rank).held) {
      OnHeld(request, now_ms);
    }
    if (PoolOf(place) == HandoffPool::kDecode) {
      Attempt(place, rank, now_ms);
    }
  }
}

void HandoffCoordinator::OnKvEvents(std::uint32_t place, std::uint32_t rank,
                                    const engine::KvEventBuffer& events) {
  const Pool& of = pool(PoolOf(place));
  if (!of.router->WantsEvents()) {
    return;
  }
  const std::uint32_t target = of.shape.NumberOf({place - of.first, rank});
  for (const auto& record : events.records()) {
    if (record.kind == kv::KvEvent::Kind::kStored) {
      of.router->OnStored(target, events.blocks(record));
    } else {
      of.router->OnRemoved(target, events.blocks(record));
    }
  }
}

bool HandoffCoordinator::Unstick(double now_ms) {
  return std::ranges::any_of(drivers_.begin() + options_.prefill_workers, drivers_.end(),
                             [&](WorkerDriver* driver) { return driver->Unstick(now_ms); });
}

}  // namespace dynosim::live
