// SPDX-License-Identifier: Apache-2.0
// RunLoop: what every topology shares: the clock, the queue of busy workers, the cap, telemetry
// ticks, and the records (chapter 30, sections 2, 3 and 5). A topology says what happens at one
// time (Drain).
//
// Workers of all pools stand in one list, in pool order, so that list order is the order in which
// equal-time completions are applied.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/settings.h"
#include "engine/worker.h"
#include "scenario/scenario.h"
#include "sim/event_feed.h"
#include "sim/forced_placements.h"
#include "sim/outcome.h"
#include "sim/pool_router.h"
#include "sim/recorder.h"
#include "sim/run.h"
#include "sim/telemetry.h"
#include "sim/worker_queue.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::sim {

class RunLoop {
 public:
  RunLoop(const scenario::Scenario& scenario, workload::RequestSource& source,
          const RunHooks& hooks);
  RunLoop(const RunLoop&) = delete;
  RunLoop& operator=(const RunLoop&) = delete;
  virtual ~RunLoop() = default;

  Result<Outcome> Run();

 protected:
  // Processes everything that happens at `now_ms`, until nothing changes.
  virtual Result<void> Drain(double now_ms) = 0;
  // Time of the next event that is not the end of a pass or an arrival.
  virtual std::optional<double> NextTopologyEventMs() const { return std::nullopt; }
  // Signals and handoffs of a pass that has just ended.
  virtual void ApplyPass(std::uint32_t place, double now_ms) = 0;
  // A worker's pass took no time and did nothing: true if it waits for the next round.
  virtual bool SetAside(std::uint32_t /*place*/) { return false; }
  // No next event is left though requests are in flight: frees one stuck rank. False if none is
  // stuck.
  virtual bool Unstick() { return false; }
  // Topology part of the outcome: worker-seconds and GPUs.
  virtual void FillOutcome(Outcome& outcome) const = 0;

  // Adds a worker to the end of the list and returns its place there. `id` counts inside its pool,
  // whose router is `router`.
  std::uint32_t AddWorker(const engine::EngineSettings& settings, Pool pool, std::uint32_t id,
                          PoolRouter& router);
  RoutingContext MakeRoutingContext();
  engine::Worker& worker(std::uint32_t place) { return workers_[place]; }
  const engine::Worker& worker(std::uint32_t place) const { return workers_[place]; }

  // The steps of a round that are the same everywhere. Each says whether it changed anything.
  void BeginRound(bool first) {
    first_round_ = first;
    started_places_ = 0;
  }
  bool CompleteDue(double now_ms);
  // Starts passes of the pool's workers, which stand in [from, to), lowest first. Passes that take
  // no time end at once.
  Result<bool> StartWorkers(Pool pool, std::uint32_t from, std::uint32_t to, double now_ms);
  // Next request that is ready, noted as arrived.
  bool NextArrival(double now_ms, workload::Request& out);
  // A request or command joins a pass of this time unless its worker has had its chance to start
  // one: in an earlier round or earlier in this one (chapter 30, section 3).
  bool Joins(std::uint32_t place) const { return first_round_ && place >= started_places_; }

  // What a command to an idle worker stored or removed is known to the pool's router now.
  void CollectCommandEvents(std::uint32_t place, double now_ms) {
    if (feeds_[place] != nullptr) {
      feeds_[place]->CollectCommand(workers_[place].id(), now_ms);
    }
  }

  // Makes the queue agree with the worker's state after a command.
  void Requeue(std::uint32_t place);
  void MarkRunnable(std::uint32_t place) { runnable_[place / 64] |= 1ULL << (place % 64); }
  // An error when the reader of the samples wants the run to end.
  Result<void> SamplesAccepted() const;
  // A sample that is due now, taken when everything else of this round is done.
  void TakeTickAt(double now_ms);

  double now_ms() const { return now_ms_; }

  const scenario::Scenario& scenario_;
  workload::RequestSource& source_;
  Recorder recorder_;
  std::optional<TelemetrySampler> telemetry_;
  std::optional<ForcedPlacements> forced_;

 private:
  Result<void> Loop();
  Result<bool> StartWorker(Pool pool, std::uint32_t place, double now_ms);
  void CompletePass(std::uint32_t place, double now_ms);
  void CollectEvents(std::uint32_t place, double now_ms) {
    if (feeds_[place] != nullptr) {
      feeds_[place]->Collect(workers_[place].id(), now_ms);
    }
  }
  // Next place in [from, to) that may be able to start; unmarks it.
  std::optional<std::uint32_t> TakeRunnable(std::uint32_t from, std::uint32_t to);
  static Error TimingFailed(const engine::Worker& worker, double now_ms);
  static Error NoProgress(const engine::Worker& worker, double now_ms);
  Result<void> DrainAt(double now_ms);
  Result<void> StopAtCap(double next_ms, double cap_ms);
  // Lets a source that streams forget the names that nobody holds.
  void ReportHeldGroups();
  Error DeadEnd() const;
  std::optional<double> NextEventMs() const;
  double NextWorkMs(double now_ms) const;
  void TakeTicksBefore(double next_ms);

  const RunHooks& hooks_;
  WorkerQueue queue_;  // busy workers by the end of their pass or run
  std::deque<engine::Worker> workers_;
  std::vector<const PoolRouter*> routers_;
  std::vector<std::uint32_t> held_groups_;
  std::vector<EventFeed*> feeds_;        // by place, nullptr where the router wants no events
  std::vector<std::uint64_t> runnable_;  // one bit per worker
  double now_ms_ = 0.0;                  // time of the last processed event
  std::uint64_t drains_ = 0;
  bool first_round_ = true;           // of the current time
  std::uint32_t started_places_ = 0;  // workers up to this one had their chance in this round
};

}  // namespace dynosim::sim
