// SPDX-License-Identifier: Apache-2.0
// HandoffCoordinator: the way of each request through a prefill pool and a decode pool in real time
// (chapter 30, section 6). It has no clock and no thread: every call takes the current time. The
// offline loop has the same steps in sim/disaggregated.h; a test compares the two bit for bit.
//
// What a request does next goes through one first-in first-out list of actions; an action that
// needs a worker without a pass waits for the end of that pass.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/event_queue.h"
#include "base/result.h"
#include "engine/effects.h"
#include "engine/kv_event_buffer.h"
#include "engine/settings.h"
#include "live/worker_driver.h"
#include "router/config.h"
#include "router/router.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::live {

enum class HandoffPool : std::uint8_t { kPrefill, kDecode };

struct HandoffOptions {
  engine::EngineSettings prefill, decode;
  std::uint32_t prefill_workers = 1, decode_workers = 1;
  router::RouterSettings router;
  std::uint32_t id_mask = 0xFFFFFFFF;  // router::PoolShape
};

// Hears of the steps of requests. Tokens, ends and rejections by an engine are told to the sinks of
// the workers.
class HandoffListener {
 public:
  enum class Step : std::uint8_t {
    kSourceHeld,
    kDestinationReserved,
    kTransferStarted,
    kDestinationActivated,
    kSourceReleased,
  };
  HandoffListener() = default;
  HandoffListener(const HandoffListener&) = delete;
  HandoffListener& operator=(const HandoffListener&) = delete;
  virtual ~HandoffListener() = default;

  // A worker gets the request next.
  virtual void OnRouted(HandoffPool pool, const router::Decision& decision,
                        const router::PoolShape& shape, double now_ms) = 0;
  // The router of a pool refuses the request, which has ended.
  virtual void OnUnrouted(std::uint32_t request, const Error& error, double now_ms) = 0;
  // A decode worker can never hold the request, which has ended.
  virtual void OnRefused(std::uint32_t request, const engine::Rejection& why,
                         workload::TerminalStatus status, double now_ms) = 0;
  // `until_ms`: end of the transfer, else `now_ms`.
  virtual void OnStep(Step step, std::uint32_t request, double now_ms, double until_ms) = 0;
  // No worker holds the request any more.
  virtual void OnClosed(std::uint32_t request) = 0;
};

class HandoffCoordinator {
 public:
  // `source` knows the requests by id.
  HandoffCoordinator(const HandoffOptions& options, const workload::RequestSource& source,
                     HandoffListener& listener);

  // Workers in order, those of the prefill pool first; a worker's place is its number in this
  // order. Their sinks call OnRankPass, OnPassEnd and, if wanted, OnKvEvents.
  void AddWorker(WorkerDriver& driver) { drivers_.push_back(&driver); }
  HandoffPool PoolOf(std::uint32_t place) const {
    return place < options_.prefill_workers ? HandoffPool::kPrefill : HandoffPool::kDecode;
  }
  std::uint32_t FirstOf(HandoffPool which) const { return pool(which).first; }
  bool WantsEvents(std::uint32_t place) const { return pool(PoolOf(place)).router->WantsEvents(); }

  // Takes a request; `rank` of the decode worker may be workload::kNone.
  void Submit(const workload::Request& request, std::uint32_t rank);
  // Takes a request out of both pools at once.
  void Cancel(std::uint32_t request, double now_ms);
  // Carries out what is due. True if something was.
  bool Act(double now_ms);
  // When Act has something to do; empty if only ends of passes bring more.
  std::optional<double> NextMs(double now_ms) const;
  // Nothing is due any more though requests are in flight: frees a stuck rank. False if none is
  // stuck.
  bool Unstick(double now_ms);
  std::vector<std::uint32_t> InFlight() const;
  std::size_t in_flight() const { return open_; }

  void OnRankPass(std::uint32_t place, const RankPass& pass, double now_ms);
  void OnPassEnd(std::uint32_t place, double now_ms);
  void OnKvEvents(std::uint32_t place, std::uint32_t rank, const engine::KvEventBuffer& events);

  // The request has not ended: what its worker tells of it counts.
  bool Open(std::uint32_t request) const;

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
  // A side of a handoff: a worker and what the request has there.
  struct Side {
    std::uint32_t place = workload::kNone, rank = 0;
    bool routed = false;  // counts in the router of the pool
    bool queued = false;  // waits in the router
    bool holds = false;   // the worker has it
  };
  struct Handoff {
    workload::Request request;
    std::uint64_t ordinal = 0;  // order of submission
    std::uint32_t wanted_rank = workload::kNone;
    Side source{}, destination{};
    std::uint64_t fresh_blocks = 0;
    bool terminal = false;
  };
  struct Pool {
    const engine::EngineSettings* settings = nullptr;
    std::uint32_t first = 0;  // place of its first worker
    router::PoolShape shape;
    std::unique_ptr<router::Router> router;
    std::vector<router::Decision> decisions{};
  };

  const Pool& pool(HandoffPool which) const {
    return which == HandoffPool::kPrefill ? prefill_ : decode_;
  }
  Handoff* Find(std::uint32_t request);
  void Push(ActionKind kind, std::uint32_t request) { actions_.push_back({kind, request}); }
  void Execute(const Action& action, double now_ms);
  void SubmitPrefill(Handoff& h, double now_ms);
  void DispatchPrefills(double now_ms);
  void ReserveDestination(Handoff& h, double now_ms);
  void StartTransfer(Handoff& h, double now_ms);
  void FreeSource(Handoff& h, const Action& action, double now_ms);
  void Attempt(std::uint32_t place, std::uint32_t rank, double now_ms);
  void OnHeld(std::uint32_t request, double now_ms);
  void OnTerminal(Handoff& h, double now_ms);
  void CleanUp(Handoff& h);
  void LeavePrefillRouter(Handoff& h, double now_ms);
  void LeaveDecodeRouter(Handoff& h, double now_ms);
  void MaybeClose(Handoff& h);
  bool IdleOrDefer(std::uint32_t place, const Action& action);

  HandoffOptions options_;
  const workload::RequestSource& source_;
  HandoffListener& listener_;
  Pool prefill_, decode_;
  bool source_first_;
  std::vector<WorkerDriver*> drivers_;
  std::map<std::uint32_t, Handoff> handoffs_;  // by request
  std::size_t open_ = 0;                       // of them, not ended
  std::uint64_t submitted_ = 0;
  std::uint32_t next_forced_ = 0;
  std::deque<Action> actions_;
  std::vector<std::vector<Action>> deferred_;  // by place
  EventQueue<std::uint32_t> transfers_;
};

}  // namespace dynosim::live
