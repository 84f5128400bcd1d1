// SPDX-License-Identifier: Apache-2.0
// AggregatedRun: the virtual-time loop over one pool of workers that prefill and decode (chapter
// 30, sections 2 to 5). At one time: completions in worker order, arrivals, then new passes;
// repeated until nothing changes.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "engine/effects.h"
#include "engine/worker.h"
#include "router/router.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "sim/pool_router.h"
#include "sim/run.h"
#include "sim/run_loop.h"
#include "workload/source.h"

namespace dynosim::sim {

class AggregatedRun final : public RunLoop {
 public:
  AggregatedRun(const scenario::Scenario& scenario, workload::RequestSource& source,
                const RunHooks& hooks);

 private:
  Result<void> Drain(double now_ms) override;
  void FillOutcome(Outcome& outcome) const override;
  bool CompleteDue(double now_ms);
  Result<bool> ReleaseArrivals(double now_ms);
  Result<bool> StartRunnable(double now_ms);
  void ApplyAdmissions(const engine::Worker& worker, double now_ms);
  void ApplySignals(std::uint32_t place, double now_ms);
  void ApplySignal(const engine::Signal& signal, const engine::PassEffects& effects,
                   std::uint32_t place, double now_ms);
  // Submits requests that the router has placed.
  void Dispatch(double now_ms);

  PoolRouter router_;
  std::vector<router::Decision> decisions_;
  bool first_round_ = true;
  // Workers up to this one have been given their chance to start in this round.
  std::uint32_t started_places_ = 0;
};

}  // namespace dynosim::sim
