// SPDX-License-Identifier: Apache-2.0
// AggregatedRun: the virtual-time loop over one pool of workers that prefill and decode (chapter
// 30, sections 2 to 5). At one time: completions in worker order, arrivals, then new passes;
// repeated until nothing changes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/effects.h"
#include "engine/worker.h"
#include "router/round_robin.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "sim/recorder.h"
#include "sim/run.h"
#include "sim/telemetry.h"
#include "sim/worker_queue.h"
#include "workload/source.h"

namespace dynosim::sim {

class AggregatedRun {
 public:
  AggregatedRun(const scenario::Scenario& scenario, workload::RequestSource& source,
                const RunHooks& hooks);

  Result<Outcome> Run();

 private:
  Result<void> Loop();
  Result<void> Drain(double now_ms);
  bool CompleteDue(double now_ms);
  bool ReleaseArrivals(double now_ms, bool first_round);
  Result<bool> StartRunnable(double now_ms);
  void ApplyAdmissions(const engine::Worker& worker, double now_ms);
  void ApplySignals(engine::Worker& worker, double now_ms);
  void ApplySignal(const engine::Signal& signal, const engine::PassEffects& effects,
                   const engine::Worker& worker, double now_ms);
  std::optional<double> NextEventMs() const;
  double NextWorkMs(double now_ms) const;
  void TakeTicksBefore(double next_ms);
  void MarkRunnable(std::uint32_t worker);
  std::optional<std::uint32_t> FirstRunnable() const;
  Error NoProgress(const engine::Worker& worker, double now_ms) const;

  const scenario::Scenario& scenario_;
  workload::RequestSource& source_;
  const RunHooks& hooks_;
  std::vector<engine::Worker> workers_;
  WorkerQueue queue_;                    // busy workers by the end of their pass or run
  std::vector<std::uint64_t> runnable_;  // one bit per worker that may be able to start
  router::RoundRobin placement_;
  Recorder recorder_;
  std::optional<TelemetrySampler> telemetry_;
  double now_ms_ = 0.0;  // time of the last processed event
};

}  // namespace dynosim::sim
