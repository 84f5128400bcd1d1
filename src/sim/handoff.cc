// SPDX-License-Identifier: Apache-2.0
#include "sim/handoff.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "engine/effects.h"
#include "engine/settings.h"
#include "engine/transfer.h"
#include "router/router.h"
#include "sim/outcome.h"
#include "workload/request.h"

namespace dynosim::sim {

Handoffs::Handoffs(const Pools& pools, HandoffHost& host, HandoffListener& listener)
    : pools_(pools),
      host_(host),
      listener_(listener),
      source_first_(pools.prefill.backend != engine::Backend::kSglang),
      deferred_(pools.prefill_workers + pools.decode_workers) {}

bool Handoffs::Open(std::uint32_t request) const {
  const Handoff* h = handoffs_.Find(request);
  return h != nullptr && !h->terminal;
}

void Handoffs::Submit(const workload::Request& request, std::uint32_t rank) {
  handoffs_[request.id] = {.request = request, .ordinal = submitted_++, .wanted_rank = rank};
  ++open_;
  Push(source_first_ ? ActionKind::kSubmitPrefill : ActionKind::kReserveDestination, request.id);
}

bool Handoffs::Act(double now_ms) {
  while (!transfers_.empty() && transfers_.TopMs() <= now_ms) {
    Push(ActionKind::kActivate, transfers_.PopTop());
  }
  bool changed = false;
  while (!actions_.empty()) {
    const Action action = actions_.front();
    actions_.pop_front();
    Execute(action, now_ms);
    changed = true;
  }
  return changed;
}

void Handoffs::Execute(const Action& action, double now_ms) {
  Handoff* found = handoffs_.Find(action.request);
  if (found == nullptr) {
    return;  // ended and gone meanwhile
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
      if (!h.terminal) {
        Activate(h, action, now_ms);
      }
      return;
    case ActionKind::kReleaseSource:
    case ActionKind::kCancelSource:
      FreeSource(h, action, now_ms);
      return;
    case ActionKind::kCancelDestination:
      CancelDestination(h, action, now_ms);
      return;
  }
}

bool Handoffs::IdleOrDefer(const HandoffSide& side, const Action& action, double now_ms) {
  host_.Settle(side.place, now_ms);
  if (!host_.Busy(side.place)) {
    return true;
  }
  deferred_[side.place].push_back({.rank = side.rank, .action = action});
  return false;
}

void Handoffs::SubmitPrefill(Handoff& h, double now_ms) {
  h.waits = true;
  if (const auto placed = host_.Place(Pool::kPrefill, h.request, workload::kNone, now_ms, made_);
      !placed) {
    h.waits = false;
    listener_.OnUnrouted(h.request.id, placed.error(), now_ms);
    EndEarly(h, now_ms);
    return;
  }
  DispatchPrefills(now_ms);
}

void Handoffs::DispatchPrefills(double now_ms) {
  for (const router::Decision& decision : made_) {
    Handoff& h = *handoffs_.Find(decision.request.id);
    h.source = {.place = decision.target.worker, .rank = decision.target.rank};
    h.waits = false;
    h.in_prefill_router = h.source_holds = true;
    listener_.OnRouted(Pool::kPrefill, decision, now_ms);
    workload::Request prompt = h.request;
    prompt.output_tokens = std::min<std::uint64_t>(1, prompt.output_tokens);
    host_.SubmitPrompt(h.source, prompt, now_ms);
  }
  made_.clear();
}

void Handoffs::ReserveDestination(Handoff& h, double now_ms) {
  const auto placed = host_.Place(Pool::kDecode, h.request, h.wanted_rank, now_ms, made_);
  if (!placed) {
    listener_.OnUnrouted(h.request.id, placed.error(), now_ms);
    EndEarly(h, now_ms);
    return;
  }
  DYNO_CHECK(made_.size() == 1);  // nothing queues in front of a decode pool
  const router::Decision& decision = made_.front();
  h.destination = {.place = FirstOf(Pool::kDecode) + decision.target.worker,
                   .rank = decision.target.rank};
  h.in_decode_router = true;
  listener_.OnRouted(Pool::kDecode, decision, now_ms);
  made_.clear();
  // A prompt beyond the context limit of the prefill pool ends there and needs no room for output
  // here.
  workload::Request request = h.request;
  const auto& limit = pools_.prefill.max_model_len;
  if (!source_first_ && limit && request.prompt_tokens >= *limit) {
    request.output_tokens = 0;
  }
  engine::Rejection why;
  if (!host_.QueueReservation(h.destination, request, now_ms, why)) {
    const bool refused = why.reason == engine::Rejection::Reason::kContextLimit ||
                         why.reason == engine::Rejection::Reason::kPromptOverPool;
    listener_.OnRefused(
        h.request.id, why,
        refused ? workload::TerminalStatus::kFailed : workload::TerminalStatus::kRejected, now_ms);
    EndEarly(h, now_ms);
    return;
  }
  h.destination_holds = true;
  if (!host_.Busy(h.destination.place)) {
    Attempt(h.destination, now_ms);
  }
}

void Handoffs::Attempt(const HandoffSide& destination, double now_ms) {
  const std::optional<engine::Grant> grant = host_.TryReserve(destination);
  if (!grant) {
    return;
  }
  handoffs_.Find(grant->request)->fresh_blocks = grant->fresh_blocks;
  listener_.OnStep(HandoffStep::kDestinationReserved, grant->request, now_ms, now_ms);
  Push(source_first_ ? ActionKind::kStartTransfer : ActionKind::kSubmitPrefill, grant->request);
}

void Handoffs::StartTransfer(Handoff& h, double now_ms) {
  const double delay_ms =
      engine::TransferMs(pools_.prefill, pools_.decode, h.request.prompt_tokens, h.fresh_blocks);
  listener_.OnStep(HandoffStep::kTransferStarted, h.request.id, now_ms, now_ms + delay_ms);
  if (delay_ms > 0.0) {
    transfers_.Push(now_ms + delay_ms, h.ordinal, h.request.id);
  } else {
    Push(ActionKind::kActivate, h.request.id);
  }
}

void Handoffs::Activate(const Handoff& h, const Action& action, double now_ms) {
  if (!IdleOrDefer(h.destination, action, now_ms)) {
    return;
  }
  host_.Activate(h.destination, action.request);
  listener_.OnStep(HandoffStep::kDestinationActivated, action.request, now_ms, now_ms);
  Push(ActionKind::kReleaseSource, action.request);
  Attempt(h.destination, now_ms);
}

void Handoffs::FreeSource(Handoff& h, const Action& action, double now_ms) {
  if (!h.source_holds || !IdleOrDefer(h.source, action, now_ms)) {
    return;
  }
  if (action.kind == ActionKind::kCancelSource) {
    host_.CancelSource(h.source, action.request, now_ms);
  } else {
    host_.ReleaseSource(h.source, action.request, now_ms);
    listener_.OnStep(HandoffStep::kSourceReleased, action.request, now_ms, now_ms);
  }
  h.source_holds = false;
  LeavePrefillRouter(h, now_ms);
  MaybeClose(h);
}

void Handoffs::CancelDestination(Handoff& h, const Action& action, double now_ms) {
  if (!h.destination_holds || !IdleOrDefer(h.destination, action, now_ms)) {
    return;
  }
  host_.CancelDestination(h.destination, action.request);
  h.destination_holds = false;
  Attempt(h.destination, now_ms);
  MaybeClose(h);
}

void Handoffs::LeavePrefillRouter(Handoff& h, double now_ms) {
  if (std::exchange(h.in_prefill_router, false)) {
    host_.LeaveRouter(Pool::kPrefill, h.request.id, now_ms, made_);
    DispatchPrefills(now_ms);
  }
}

void Handoffs::OnTerminal(Handoff& h, double now_ms) {
  h.terminal = true;
  --open_;
  if (std::exchange(h.in_decode_router, false)) {
    host_.LeaveRouter(Pool::kDecode, h.request.id, now_ms, made_);
  }
}

void Handoffs::EndEarly(Handoff& h, double now_ms) {
  OnTerminal(h, now_ms);
  if (std::exchange(h.waits, false)) {
    host_.CancelPending(h.request.id);
  }
  if (h.source_holds) {
    Push(ActionKind::kCancelSource, h.request.id);
  }
  if (h.destination_holds) {
    Push(ActionKind::kCancelDestination, h.request.id);
  }
  MaybeClose(h);
}

void Handoffs::MaybeClose(Handoff& h) {
  if (h.terminal && !h.source_holds && !h.destination_holds) {
    const std::uint32_t request = h.request.id;
    handoffs_.Erase(request);
    listener_.OnClosed(request);
  }
}

void Handoffs::PassEnded(std::uint32_t place) {
  std::vector<Deferred> due = std::exchange(deferred_[place], {});
  std::ranges::stable_sort(due, {}, &Deferred::rank);
  for (const Deferred& d : due) {
    actions_.push_back(d.action);
  }
}

void Handoffs::Ended(std::uint32_t request, bool finished, double now_ms) {
  Handoff& h = *handoffs_.Find(request);
  if (!finished) {
    EndEarly(h, now_ms);
    return;
  }
  OnTerminal(h, now_ms);
  h.destination_holds = false;
  MaybeClose(h);
}

void Handoffs::Offer(std::uint32_t place, std::uint32_t rank, const engine::PassEffects& effects,
                     double now_ms) {
  for (const std::uint32_t request : effects.held) {
    OnHeld(request, now_ms);
  }
  if (PoolOf(place) == Pool::kDecode) {
    Attempt({.place = place, .rank = rank}, now_ms);
  }
}

void Handoffs::OnHeld(std::uint32_t request, double now_ms) {
  if (!Open(request)) {
    return;
  }
  listener_.OnStep(HandoffStep::kSourceHeld, request, now_ms, now_ms);
  host_.PrefillDone(request, now_ms, made_);
  DispatchPrefills(now_ms);
  Push(source_first_ ? ActionKind::kReserveDestination : ActionKind::kStartTransfer, request);
}

std::optional<Handoffs::Holders> Handoffs::Withdraw(std::uint32_t request, double now_ms) {
  if (!Open(request)) {
    return std::nullopt;
  }
  Handoff& h = *handoffs_.Find(request);
  OnTerminal(h, now_ms);
  if (std::exchange(h.waits, false)) {
    host_.CancelPending(request);
  }
  Holders out;
  if (std::exchange(h.source_holds, false)) {
    out.source = h.source;
  }
  if (std::exchange(h.destination_holds, false)) {
    out.destination = h.destination;
  }
  return out;
}

void Handoffs::Withdrawn(std::uint32_t request, const Holders& holders, double now_ms) {
  Handoff& h = *handoffs_.Find(request);
  LeavePrefillRouter(h, now_ms);
  if (holders.destination && !host_.Busy(holders.destination->place)) {
    Attempt(*holders.destination, now_ms);
  }
  MaybeClose(h);
}

}  // namespace dynosim::sim
