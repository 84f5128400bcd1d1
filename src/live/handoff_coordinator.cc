// SPDX-License-Identifier: Apache-2.0
#include "live/handoff_coordinator.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/effects.h"
#include "engine/kv_event_buffer.h"
#include "engine/settings.h"
#include "kv/events.h"
#include "live/router_setup.h"
#include "live/worker_driver.h"
#include "router/registry.h"
#include "router/router.h"
#include "sim/handoff.h"
#include "sim/outcome.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::live {

HandoffCoordinator::HandoffCoordinator(const HandoffOptions& options,
                                       const workload::RequestSource& source,
                                       sim::HandoffListener& listener)
    : options_(options),
      source_(source),
      handoffs_({.prefill = options_.prefill,
                 .decode = options_.decode,
                 .prefill_workers = options_.prefill_workers,
                 .decode_workers = options_.decode_workers},
                *this, listener) {
  const auto make = [&](const engine::EngineSettings& settings, std::uint32_t workers,
                        router::PoolRole role) {
    router::PoolShape shape = live::ShapeOf(settings, workers);
    shape.id_mask = options_.id_mask;
    return RoutedPool{
        .shape = shape,
        .router = router::MakeRouter(RouterOf(options_.router, settings), shape, role)};
  };
  prefill_ = make(options_.prefill, options_.prefill_workers, router::PoolRole::kPrefill);
  decode_ = make(options_.decode, options_.decode_workers, router::PoolRole::kDecode);
}

Result<void> HandoffCoordinator::Place(sim::Pool which, const workload::Request& request,
                                       std::uint32_t rank, double now_ms,
                                       std::vector<router::Decision>& made) {
  std::optional<router::Target> forced;
  if (rank != workload::kNone) {
    forced = router::Target{next_forced_++ % pool(which).shape.workers, rank};
  }
  return pool(which).router->Place({.request = request, .source = source_, .forced = forced},
                                   now_ms, made);
}

void HandoffCoordinator::PrefillDone(std::uint32_t request, double now_ms,
                                     std::vector<router::Decision>& made) {
  prefill_.router->PrefillDone(request, now_ms, made);
}

void HandoffCoordinator::LeaveRouter(sim::Pool which, std::uint32_t request, double now_ms,
                                     std::vector<router::Decision>& made) {
  pool(which).router->Terminal(request, now_ms, made);
}

void HandoffCoordinator::SubmitPrompt(const sim::HandoffSide& source,
                                      const workload::Request& prompt, double now_ms) {
  drivers_[source.place]->Submit(prompt, source.rank, now_ms);
}

bool HandoffCoordinator::QueueReservation(const sim::HandoffSide& destination,
                                          const workload::Request& request, double now_ms,
                                          engine::Rejection& why) {
  return drivers_[destination.place]->QueueReservation(request, destination.rank, now_ms, why);
}

std::optional<engine::Grant> HandoffCoordinator::TryReserve(const sim::HandoffSide& destination) {
  return drivers_[destination.place]->TryReserve(destination.rank);
}

void HandoffCoordinator::Activate(const sim::HandoffSide& destination, std::uint32_t request) {
  drivers_[destination.place]->Activate(request, destination.rank);
}

void HandoffCoordinator::ReleaseSource(const sim::HandoffSide& source, std::uint32_t request,
                                       double /*now_ms*/) {
  drivers_[source.place]->ReleaseSource(request, source.rank);
}

void HandoffCoordinator::CancelSource(const sim::HandoffSide& source, std::uint32_t request,
                                      double /*now_ms*/) {
  drivers_[source.place]->CancelSource(request, source.rank);
}

void HandoffCoordinator::CancelDestination(const sim::HandoffSide& destination,
                                           std::uint32_t request) {
  drivers_[destination.place]->CancelDestination(request, destination.rank);
}

void HandoffCoordinator::Cancel(std::uint32_t request, double now_ms) {
  const std::optional<sim::Handoffs::Holders> holders = handoffs_.Withdraw(request, now_ms);
  if (!holders) {
    return;
  }
  for (const auto& side : {holders->source, holders->destination}) {
    if (side) {
      drivers_[side->place]->Cancel(request, side->rank, now_ms);
    }
  }
  handoffs_.Withdrawn(request, *holders, now_ms);
}

void HandoffCoordinator::OnRankPass(std::uint32_t place, const RankPass& pass, double now_ms) {
  if (pass.rank == 0) {
    handoffs_.PassEnded(place);
  }
  for (const engine::Signal& signal : pass.effects.signals) {
    if (signal.kind != engine::Signal::Kind::kFirstToken && handoffs_.Open(signal.request)) {
      handoffs_.Ended(signal.request, signal.kind == engine::Signal::Kind::kFinished, now_ms);
    }
  }
}

void HandoffCoordinator::OnPassEnd(std::uint32_t place, double now_ms) {
  const engine::Worker& worker = drivers_[place]->worker();
  for (std::uint32_t rank = 0; rank < worker.ranks(); ++rank) {
    handoffs_.Offer(place, rank, worker.Effects(rank), now_ms);
  }
}

void HandoffCoordinator::OnKvEvents(std::uint32_t place, std::uint32_t rank,
                                    const engine::KvEventBuffer& events) {
  const sim::Pool which = PoolOf(place);
  const RoutedPool& of = pool(which);
  if (!of.router->WantsEvents()) {
    return;
  }
  const std::uint32_t target = of.shape.NumberOf({place - FirstOf(which), rank});
  for (const auto& record : events.records()) {
    if (record.kind == kv::KvEvent::Kind::kStored) {
      of.router->OnStored(target, events.blocks(record));
    } else {
      of.router->OnRemoved(target, events.blocks(record));
    }
  }
}

bool HandoffCoordinator::Unstick(double now_ms) {
  return std::ranges::any_of(drivers_.begin() + options_.prefill_workers, drivers_.end(),
                             [&](WorkerDriver* driver) { return driver->Unstick(now_ms); });
}

}  // namespace dynosim::live
