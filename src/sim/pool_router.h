// SPDX-License-Identifier: Apache-2.0
// PoolRouter: the router of one pool inside a run. It feeds the router with KV events, forces
// placements of an earlier report, and turns decisions into records.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/settings.h"
#include "engine/worker.h"
#include "router/router.h"
#include "scenario/scenario.h"
#include "sim/event_feed.h"
#include "sim/forced_placements.h"
#include "sim/outcome.h"
#include "sim/recorder.h"
#include "sim/telemetry.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::sim {

// The parts of a run that placements touch; all outlive the router.
struct RoutingContext {
  const scenario::Scenario& scenario;
  const workload::RequestSource& source;
  Recorder& recorder;
  std::optional<TelemetrySampler>& telemetry;
  ForcedPlacements* forced = nullptr;  // null: placements are free
};

// The record of a decision that was made at `now_ms`, without its candidates.
RoutingRecord RecordOf(const router::Decision& decision, Pool pool, const router::PoolShape& shape,
                       double now_ms);

class PoolRouter {
 public:
  PoolRouter(const RoutingContext& context, Pool pool, const engine::EngineSettings& settings,
             std::uint32_t workers);

  // Workers are added in the order of their ids.
  void AddWorker(engine::Worker& worker) {
    if (feed_) {
      feed_->AddWorker(worker);
    }
  }
  // Appends the groups of all names that the router remembers or is still to hear of.
  void AppendHeldGroups(std::vector<std::uint32_t>& groups) const {
    router_->AppendHeldGroups(groups);
    if (feed_) {
      feed_->AppendHeldGroups(groups);
    }
  }
  bool WantsEvents() const { return feed_.has_value(); }
  EventFeed* feed() { return feed_ ? &*feed_ : nullptr; }

  // Each call appends the decisions that were made; the caller carries them out in this order.
  Result<void> Place(const workload::Request& request, double now_ms);
  void PrefillDone(std::uint32_t request, double now_ms);
  void Terminal(std::uint32_t request, double now_ms);
  bool CancelPending(std::uint32_t request) { return router_->CancelPending(request); }
  std::uint64_t Pending() const { return router_->Pending(); }

  bool HasDecisions() const { return !decisions_.empty(); }
  // Moves the decisions made since the last call to `out`.
  void TakeDecisions(std::vector<router::Decision>& out) {
    out.clear();
    out.swap(decisions_);
  }

 private:
  void Record(std::size_t first, double now_ms);

  RoutingContext context_;
  Pool pool_;
  router::PoolShape shape_;
  std::unique_ptr<router::Router> router_;
  std::optional<EventFeed> feed_;
  std::vector<router::Decision> decisions_;
};

}  // namespace dynosim::sim
