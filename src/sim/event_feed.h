// SPDX-License-Identifier: Apache-2.0
// EventFeed: brings the KV events of a pool's workers to its router, each when the pass that
// produced it has ended (plus a lag), in order per target.
//
// Workers may be ahead of what has been published, or have planned passes that are not executed
// yet; a placement asks for everything that is due (Sync). Only evictions can change what a
// placement sees while a run is planned: a block of generated tokens that nobody else can share is
// looked up by a later turn at the earliest, after the end of its run. So a planned run is looked
// into only when it may have evicted a block by then.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "engine/worker.h"
#include "kv/events.h"
#include "router/router.h"

namespace dynosim::sim {

class EventFeed {
 public:
  // `any_event`: generated blocks can be shared while their request runs.
  EventFeed(router::Router& router, double lag_ms, bool any_event)
      : router_(router), lag_ms_(lag_ms), any_event_(any_event) {}

  // Workers are added in the order of their ids and outlive the feed.
  void AddWorker(engine::Worker& worker);

  // A pass or run has been started.
  void OnStarted(std::uint32_t id) { hidden_ms_[id] = workers_[id]->NextHiddenEventMs(any_event_); }
  // Passes of the worker have ended by now: takes their events.
  void Collect(std::uint32_t id, double now_ms);
  // A command was given to the idle worker: its events are due now.
  void CollectCommand(std::uint32_t id, double now_ms);
  // Appends the groups of all names that the router is still to hear of, with repetitions.
  void AppendHeldGroups(std::vector<std::uint32_t>& groups) const;
  // Brings the router everything that is due by now.
  void Sync(double now_ms);

 private:
  struct Delayed {
    double due_ms = 0.0;
    std::uint32_t target = 0;
    bool stored = false;
    std::vector<kv::BlockName> blocks;
  };
  void Take(std::uint32_t id, std::uint64_t last_pass, const double* at_ms);

  router::Router& router_;
  double lag_ms_;
  bool any_event_;
  std::vector<engine::Worker*> workers_;
  std::vector<double> hidden_ms_;             // by worker: first hidden event that matters
  std::vector<std::deque<Delayed>> delayed_;  // by worker, due times never fall
};

}  // namespace dynosim::sim
