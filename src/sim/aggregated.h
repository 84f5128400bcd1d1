// SPDX-License-Identifier: Apache-2.0
// AggregatedRun: the virtual-time loop over one pool of workers that prefill and decode (chapter
// 30, sections 2 to 5). At one time: completions in worker order, arrivals, then new passes;
// repeated until nothing changes.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "engine/effects.h"
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
  void ApplyPass(std::uint32_t place, double now_ms) override;
  void FillOutcome(Outcome& outcome) const override;
  Result<bool> ReleaseArrivals(double now_ms);
  void ApplySignal(const engine::Signal& signal, const engine::PassEffects& effects,
                   std::uint32_t place, double now_ms);
  // Submits requests that the router has placed.
  void Dispatch(double now_ms);

  PoolRouter router_;
  std::vector<router::Decision> decisions_;
};

}  // namespace dynosim::sim
