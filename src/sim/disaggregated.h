// SPDX-License-Identifier: Apache-2.0
// DisaggregatedRun: the virtual-time loop over a prefill pool and a decode pool with KV handoffs
// between them (chapter 30, sections 3 and 6).
//
// Each request is a small state machine. What it does next goes through one first-in first-out list
// of actions; an action that needs an idle worker waits for the end of that worker's pass.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/check.h"
#include "base/event_queue.h"
#include "base/result.h"
#include "engine/effects.h"
#include "engine/settings.h"
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

class DisaggregatedRun final : public RunLoop {
 public:
  DisaggregatedRun(const scenario::Scenario& scenario, workload::RequestSource& source,
                   const RunHooks& hooks);

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
  // Where one request stands. `place` counts over all workers, prefill workers first.
  struct Handoff {
    workload::Request request;
    std::uint64_t ordinal = 0;  // order of release
    std::uint32_t source_place = workload::kNone, source_rank = 0;
    std::uint32_t destination_place = workload::kNone, destination_rank = 0;
    std::uint64_t fresh_blocks = 0;
    bool in_prefill_router = false;  // placed in the prefill pool and not yet gone from it
    bool in_decode_router = false;
    bool held = false;
    bool reserved = false;
    bool terminal = false;
    std::uint32_t pending = 0;  // actions and transfers to come

    bool Over() const {
      return terminal && pending == 0 && !in_prefill_router && !in_decode_router;
    }
  };
  struct PoolState {
    const engine::EngineSettings* settings = nullptr;
    Pool pool = Pool::kPrefill;
    std::uint32_t first = 0;  // place of its first worker
    std::uint32_t workers = 0;
  };

  Result<void> Drain(double now_ms) override;
  void ApplyPass(std::uint32_t place, double now_ms) override;
  bool SetAside(std::uint32_t place) override {
    set_aside_.push_back(place);
    return true;
  }
  std::optional<double> NextTopologyEventMs() const override;
  bool Unstick() override;
  void FillOutcome(Outcome& outcome) const override;

  bool FinishTransfers(double now_ms);
  Result<bool> RunActions(double now_ms);
  bool ReleaseArrivals(double now_ms);
  Result<bool> StartPool(const PoolState& pool, double now_ms) {
    return StartWorkers(pool.pool, pool.first, pool.first + pool.workers, now_ms);
  }

  Result<void> Execute(const Action& action, double now_ms);
  // Carries out what the prefill router has decided.
  void DispatchPrefills(double now_ms);
  Result<void> ReserveDestination(Handoff& h, double now_ms);
  void FreeSource(Handoff& h, const Action& action, double now_ms);
  void LeavePrefillRouter(Handoff& h, double now_ms);
  void LeaveDecodeRouter(Handoff& h, double now_ms);
  // False when the action has to wait for the worker's pass.
  void StartTransfer(Handoff& h, double now_ms);
  bool IdleOrDefer(std::uint32_t place, const Action& action, double now_ms);

  void ApplySignal(const engine::Signal& signal, const engine::PassEffects& effects,
                   std::uint32_t place, double now_ms);
  void OnHeld(std::uint32_t request, double now_ms);
  void Attempt(std::uint32_t place, std::uint32_t rank, double now_ms);
  void OnTerminal(Handoff& h, double now_ms, workload::TerminalStatus status, std::uint64_t tokens);
  void CleanUp(const Handoff& h);
  bool InPrefill(std::uint32_t place) const { return place < prefill_.workers; }
  void Push(ActionKind kind, std::uint32_t request) {
    ++Of(request).pending;
    actions_.push_back({kind, request});
  }
  // Null when the request is over and forgotten.
  Handoff* Find(std::uint32_t request) {
    return request < forgotten_ ? nullptr : &handoffs_[request - forgotten_];
  }
  Handoff& Of(std::uint32_t request) {
    DYNO_CHECK(request >= forgotten_);
    return handoffs_[request - forgotten_];
  }
  // Forgets the oldest requests that are over, when requests come in order.
  void Forget();

  PoolState prefill_, decode_;
  PoolRouter prefill_router_, decode_router_;
  std::vector<router::Decision> decisions_;
  bool source_first_ = true;       // vLLM; SGLang reserves the destination first
  std::deque<Handoff> handoffs_;   // by request id, from the first that is not forgotten
  std::uint32_t forgotten_ = 0;
  std::uint64_t released_ = 0;
  std::deque<Action> actions_;
  std::vector<std::vector<Action>> deferred_;  // by place
  std::vector<std::uint32_t> set_aside_;       // workers whose last pass did nothing
  EventQueue<std::uint32_t> transfers_;        // request ids by (time, order of release)
};

}  // namespace dynosim::sim
