// SPDX-License-Identifier: Apache-2.0
// DisaggregatedRun: the virtual-time loop over a prefill pool and a decode pool with KV handoffs
// between them (chapter 30, sections 3 and 6).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/effects.h"
#include "engine/settings.h"
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

class DisaggregatedRun final : public RunLoop, private HandoffHost, private HandoffListener {
 public:
  DisaggregatedRun(const scenario::Scenario& scenario, workload::RequestSource& source,
                   const RunHooks& hooks);

 private:
  struct PoolState {
    const engine::EngineSettings* settings = nullptr;
    Pool pool = Pool::kPrefill;
    std::uint32_t first = 0;  // place of its first worker
    std::uint32_t workers = 0;
  };

  // Of the loop.
  Result<void> Drain(double now_ms) override;
  void ApplyPass(std::uint32_t place, double now_ms) override;
  bool SetAside(std::uint32_t place) override {
    set_aside_.push_back(place);
    return true;
  }
  std::optional<double> NextTopologyEventMs() const override { return handoffs_.NextTransferMs(); }
  bool Unstick() override;
  void FillOutcome(Outcome& outcome) const override;

  // Of the handoffs.
  Result<void> Place(Pool pool, const workload::Request& request, std::uint32_t rank, double now_ms,
                     std::vector<router::Decision>& made) override;
  void PrefillDone(std::uint32_t request, double now_ms,
                   std::vector<router::Decision>& made) override;
  void LeaveRouter(Pool pool, std::uint32_t request, double now_ms,
                   std::vector<router::Decision>& made) override;
  void CancelPending(std::uint32_t request) override { prefill_router_.CancelPending(request); }
  void Settle(std::uint32_t place, double now_ms) override;
  bool Busy(std::uint32_t place) const override { return worker(place).Busy(); }
  void SubmitPrompt(const HandoffSide& source, const workload::Request& prompt,
                    double now_ms) override;
  bool QueueReservation(const HandoffSide& destination, const workload::Request& request,
                        double now_ms, engine::Rejection& why) override;
  std::optional<engine::Grant> TryReserve(const HandoffSide& destination) override;
  void Activate(const HandoffSide& destination, std::uint32_t request) override;
  void ReleaseSource(const HandoffSide& source, std::uint32_t request, double now_ms) override;
  void CancelSource(const HandoffSide& source, std::uint32_t request, double now_ms) override;
  void CancelDestination(const HandoffSide& destination, std::uint32_t request) override;
  void OnStep(HandoffStep step, std::uint32_t request, double now_ms, double until_ms) override {
    recorder_.OnHandoffStep(step, request, now_ms, until_ms);
  }
  void OnUnrouted(std::uint32_t /*request*/, const Error& error, double /*now_ms*/) override {
    failed_ = error;
  }
  void OnRefused(std::uint32_t request, const engine::Rejection& why,
                 workload::TerminalStatus status, double now_ms) override;

  bool ReleaseArrivals(double now_ms);
  Result<bool> StartPool(const PoolState& pool, double now_ms) {
    return StartWorkers(pool.pool, pool.first, pool.first + pool.workers, now_ms);
  }
  void ApplySignal(const engine::Signal& signal, const engine::PassEffects& effects,
                   std::uint32_t place, double now_ms);
  void OnTerminal(std::uint32_t request, double now_ms, workload::TerminalStatus status,
                  std::uint64_t tokens);
  PoolRouter& RouterOf(Pool pool) {
    return pool == Pool::kPrefill ? prefill_router_ : decode_router_;
  }

  PoolState prefill_, decode_;
  PoolRouter prefill_router_, decode_router_;
  Handoffs handoffs_;
  std::vector<std::uint32_t> set_aside_;  // workers whose last pass did nothing
  std::optional<Error> failed_;           // of a router
};

}  // namespace dynosim::sim
