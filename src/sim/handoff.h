// SPDX-License-Identifier: Apache-2.0
// Handoffs: the way of each request through a prefill pool and a decode pool (chapter 30, section
// 6). It has no clock, no workers and no routers of its own: every call takes the current time, a
// host carries out what is to be done, and a listener hears of it. The virtual-time loop and the
// live coordinator are the two hosts.
//
// Each request is a small state machine. What it does next goes through one first-in first-out list
// of actions; an action that needs a worker without a pass waits for the end of that pass. What
// waited for one worker is then taken up rank by rank (observed; the text of the chapter has no
// ranks).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/event_queue.h"
#include "base/flat_map.h"
#include "base/result.h"
#include "engine/effects.h"
#include "engine/settings.h"
#include "router/router.h"
#include "sim/outcome.h"
#include "workload/request.h"

namespace dynosim::sim {

// A rank of a worker. `place` counts over all workers, those of the prefill pool first.
struct HandoffSide {
  std::uint32_t place = workload::kNone, rank = 0;
};

class HandoffHost {
 public:
  HandoffHost() = default;
  HandoffHost(const HandoffHost&) = delete;
  HandoffHost& operator=(const HandoffHost&) = delete;
  virtual ~HandoffHost() = default;

  // The routers of the pools. Decisions go to `made`, which is empty; those of the prefill pool may
  // be about other requests, which waited. `rank`: wanted rank of a decode worker, or kNone.
  virtual Result<void> Place(Pool pool, const workload::Request& request, std::uint32_t rank,
                             double now_ms, std::vector<router::Decision>& made) = 0;
  virtual void PrefillDone(std::uint32_t request, double now_ms,
                           std::vector<router::Decision>& made) = 0;
  virtual void LeaveRouter(Pool pool, std::uint32_t request, double now_ms,
                           std::vector<router::Decision>& made) = 0;
  virtual void CancelPending(std::uint32_t request) = 0;

  // The workers. Settle brings a worker's state up to now. QueueReservation may come at any time,
  // TryReserve and the commands that follow only while the worker is not busy.
  virtual void Settle(std::uint32_t place, double now_ms) = 0;
  virtual bool Busy(std::uint32_t place) const = 0;
  virtual void SubmitPrompt(const HandoffSide& source, const workload::Request& prompt,
                            double now_ms) = 0;
  virtual bool QueueReservation(const HandoffSide& destination, const workload::Request& request,
                                double now_ms, engine::Rejection& why) = 0;
  virtual std::optional<engine::Grant> TryReserve(const HandoffSide& destination) = 0;
  virtual void Activate(const HandoffSide& destination, std::uint32_t request) = 0;
  virtual void ReleaseSource(const HandoffSide& source, std::uint32_t request, double now_ms) = 0;
  virtual void CancelSource(const HandoffSide& source, std::uint32_t request, double now_ms) = 0;
  virtual void CancelDestination(const HandoffSide& destination, std::uint32_t request) = 0;
};

// Hears of the steps of requests. Tokens, ends and rejections by an engine are told by the workers.
class HandoffListener {
 public:
  HandoffListener() = default;
  HandoffListener(const HandoffListener&) = delete;
  HandoffListener& operator=(const HandoffListener&) = delete;
  virtual ~HandoffListener() = default;

  // The decision takes the request to a worker next.
  virtual void OnRouted(Pool /*pool*/, const router::Decision& /*decision*/, double /*now_ms*/) {}
  // `until_ms`: end of the transfer, else `now_ms`.
  virtual void OnStep(HandoffStep step, std::uint32_t request, double now_ms, double until_ms) = 0;
  // The router of a pool refuses the request, which has ended.
  virtual void OnUnrouted(std::uint32_t request, const Error& error, double now_ms) = 0;
  // A decode worker can never hold the request, which has ended.
  virtual void OnRefused(std::uint32_t request, const engine::Rejection& why,
                         workload::TerminalStatus status, double now_ms) = 0;
  // No worker holds the request any more.
  virtual void OnClosed(std::uint32_t /*request*/) {}
};

class Handoffs {
 public:
  struct Pools {
    const engine::EngineSettings& prefill;
    const engine::EngineSettings& decode;
    std::uint32_t prefill_workers = 1, decode_workers = 1;
  };
  // The settings, the host and the listener outlive the object.
  Handoffs(const Pools& pools, HandoffHost& host, HandoffListener& listener);

  Pool PoolOf(std::uint32_t place) const {
    return place < pools_.prefill_workers ? Pool::kPrefill : Pool::kDecode;
  }
  std::uint32_t FirstOf(Pool pool) const {
    return pool == Pool::kPrefill ? 0 : pools_.prefill_workers;
  }

  // Takes a request; `rank` of the decode worker may be workload::kNone.
  void Submit(const workload::Request& request, std::uint32_t rank);
  // Carries out what is due. True if something was.
  bool Act(double now_ms);
  bool HasActions() const { return !actions_.empty(); }
  // End of the next transfer.
  std::optional<double> NextTransferMs() const {
    return transfers_.empty() ? std::nullopt : std::optional(transfers_.TopMs());
  }
  // The request has not ended: what its worker tells of it counts.
  bool Open(std::uint32_t request) const;
  std::size_t open() const { return open_; }

  // A pass of the worker has ended: first PassEnded, then Ended for each request that finished or
  // was rejected in it, then Offer.
  void PassEnded(std::uint32_t place);
  void Ended(std::uint32_t request, bool finished, double now_ms);
  void Offer(std::uint32_t place, std::uint32_t rank, const engine::PassEffects& effects,
             double now_ms);

  // An open request ends here and now: the caller takes it from the workers that hold it and calls
  // Withdrawn. Empty if it is not open.
  struct Holders {
    std::optional<HandoffSide> source, destination;
  };
  std::optional<Holders> Withdraw(std::uint32_t request, double now_ms);
  void Withdrawn(std::uint32_t request, const Holders& holders, double now_ms);

 private:
  enum class ActionKind : std::uint8_t {
    kSubmitPrefill,
    kReserveDestination,
    kStartTransfer,
    kActivate,
    kReleaseSource,
    kCancelSource,
    kCancelDestination,
  };
  struct Action {
    ActionKind kind = ActionKind::kSubmitPrefill;
    std::uint32_t request = 0;
  };
  struct Deferred {
    std::uint32_t rank = 0;
    Action action{};
  };
  struct Handoff {
    workload::Request request;
    std::uint64_t ordinal = 0;  // order of submission
    std::uint32_t wanted_rank = workload::kNone;
    HandoffSide source{}, destination{};
    std::uint64_t fresh_blocks = 0;
    bool waits = false;              // in the router of the prefill pool
    bool in_prefill_router = false;  // placed there, and not yet gone from it
    bool in_decode_router = false;
    bool source_holds = false, destination_holds = false;  // the worker has it
    bool terminal = false;
  };

  void Push(ActionKind kind, std::uint32_t request) { actions_.push_back({kind, request}); }
  void Execute(const Action& action, double now_ms);
  void SubmitPrefill(Handoff& h, double now_ms);
  // Carries out what the prefill router has decided.
  void DispatchPrefills(double now_ms);
  void ReserveDestination(Handoff& h, double now_ms);
  void StartTransfer(Handoff& h, double now_ms);
  void Activate(const Handoff& h, const Action& action, double now_ms);
  void FreeSource(Handoff& h, const Action& action, double now_ms);
  void CancelDestination(Handoff& h, const Action& action, double now_ms);
  void Attempt(const HandoffSide& destination, double now_ms);
  void OnHeld(std::uint32_t request, double now_ms);
  void LeavePrefillRouter(Handoff& h, double now_ms);
  void OnTerminal(Handoff& h, double now_ms);
  // The request ends though workers or the router may hold it: they let go of it.
  void EndEarly(Handoff& h, double now_ms);
  void MaybeClose(Handoff& h);
  bool IdleOrDefer(const HandoffSide& side, const Action& action, double now_ms);

  Pools pools_;
  HandoffHost& host_;
  HandoffListener& listener_;
  bool source_first_;  // vLLM; SGLang reserves the destination first
  FlatMap<std::uint32_t, Handoff> handoffs_;
  std::size_t open_ = 0;  // of them, not ended
  std::uint64_t submitted_ = 0;
  std::deque<Action> actions_;
  std::vector<std::vector<Deferred>> deferred_;  // by place
  EventQueue<std::uint32_t> transfers_;          // requests by (time, order of submission)
  std::vector<router::Decision> made_;
};

}  // namespace dynosim::sim
