// SPDX-License-Identifier: Apache-2.0
// HandoffCoordinator: live workers and routers of a prefill pool and a decode pool, with the
// handoffs between them (sim/handoff.h). It has no clock and no thread: every call takes the
// current time. A test compares it with the offline loop bit for bit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/effects.h"
#include "engine/kv_event_buffer.h"
#include "engine/settings.h"
#include "live/worker_driver.h"
#include "live/worker_handoffs.h"
#include "router/config.h"
#include "router/router.h"
#include "sim/handoff.h"
#include "sim/outcome.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::live {

struct HandoffOptions {
  engine::EngineSettings prefill, decode;
  std::uint32_t prefill_workers = 1, decode_workers = 1;
  router::RouterSettings router;
  std::uint32_t id_mask = 0xFFFFFFFF;  // router::PoolShape
};

class HandoffCoordinator final : public WorkerHandoffs, private sim::HandoffHost {
 public:
  // `source` knows the requests by id.
  HandoffCoordinator(const HandoffOptions& options, const workload::RequestSource& source,
                     sim::HandoffListener& listener);

  // Workers in order, those of the prefill pool first; a worker's place is its number in this
  // order. Their sinks call OnRankPass, OnPassEnd and, if wanted, OnKvEvents.
  void AddWorker(WorkerDriver& driver) { drivers_.push_back(&driver); }
  sim::Pool PoolOf(std::uint32_t place) const { return handoffs_.PoolOf(place); }
  std::uint32_t FirstOf(sim::Pool which) const { return handoffs_.FirstOf(which); }
  const router::PoolShape& ShapeOf(sim::Pool which) const { return pool(which).shape; }
  bool WantsEvents(std::uint32_t place) const override {
    return pool(PoolOf(place)).router->WantsEvents();
  }

  // Takes a request; `rank` of the decode worker may be workload::kNone.
  void Submit(const workload::Request& request, std::uint32_t rank) {
    handoffs_.Submit(request, rank);
  }
  // Takes a request out of both pools at once.
  void Cancel(std::uint32_t request, double now_ms) override;
  // Carries out what is due. True if something was.
  bool Act(double now_ms) { return handoffs_.Act(now_ms); }
  // When Act has something to do; empty if only ends of passes bring more.
  std::optional<double> NextMs(double now_ms) const {
    return handoffs_.HasActions() ? std::optional(now_ms) : handoffs_.NextTransferMs();
  }
  // Nothing is due any more though requests are in flight: frees a stuck rank. False if none is
  // stuck.
  bool Unstick(double now_ms);
  std::size_t in_flight() const { return handoffs_.open(); }

  void OnRankPass(std::uint32_t place, const RankPass& pass, double now_ms) override;
  void OnPassEnd(std::uint32_t place, double now_ms) override;
  void OnKvEvents(std::uint32_t place, std::uint32_t rank,
                  const engine::KvEventBuffer& events) override;

  // The request has not ended: what its worker tells of it counts.
  bool Open(std::uint32_t request) const { return handoffs_.Open(request); }

 private:
  struct RoutedPool {
    router::PoolShape shape;
    std::unique_ptr<router::Router> router;
  };

  Result<void> Place(sim::Pool pool, const workload::Request& request, std::uint32_t rank,
                     double now_ms, std::vector<router::Decision>& made) override;
  void PrefillDone(std::uint32_t request, double now_ms,
                   std::vector<router::Decision>& made) override;
  void LeaveRouter(sim::Pool pool, std::uint32_t request, double now_ms,
                   std::vector<router::Decision>& made) override;
  void CancelPending(std::uint32_t request) override { prefill_.router->CancelPending(request); }
  void Settle(std::uint32_t /*place*/, double /*now_ms*/) override {}
  bool Busy(std::uint32_t place) const override { return drivers_[place]->worker().Busy(); }
  void SubmitPrompt(const sim::HandoffSide& source, const workload::Request& prompt,
                    double now_ms) override;
  bool QueueReservation(const sim::HandoffSide& destination, const workload::Request& request,
                        double now_ms, engine::Rejection& why) override;
  std::optional<engine::Grant> TryReserve(const sim::HandoffSide& destination) override;
  void Activate(const sim::HandoffSide& destination, std::uint32_t request) override;
  void ReleaseSource(const sim::HandoffSide& source, std::uint32_t request, double now_ms) override;
  void CancelSource(const sim::HandoffSide& source, std::uint32_t request, double now_ms) override;
  void CancelDestination(const sim::HandoffSide& destination, std::uint32_t request) override;

  const RoutedPool& pool(sim::Pool which) const {
    return which == sim::Pool::kPrefill ? prefill_ : decode_;
  }

  HandoffOptions options_;
  const workload::RequestSource& source_;
  RoutedPool prefill_, decode_;
  std::vector<WorkerDriver*> drivers_;
  std::uint32_t next_forced_ = 0;
  sim::Handoffs handoffs_;
};

}  // namespace dynosim::live
