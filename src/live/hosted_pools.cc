// SPDX-License-Identifier: Apache-2.0
#include "live/hosted_pools.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/effects.h"
#include "live/engine_host.h"
#include "live/handoff_coordinator.h"
#include "live/live_request.h"
#include "router/router.h"
#include "sim/outcome.h"
#include "workload/request.h"

namespace dynosim::live {

void HostedPools::Submit(std::uint64_t stream, std::uint32_t rank,
                         std::shared_ptr<const LiveRequest> request, double now_ms) {
  const workload::Request added = requests_.Add(std::move(request), now_ms);
  streams_[added.id] = {.number = stream, .entered_ms = now_ms, .workers = {}};
  ids_[stream] = added.id;
  coordinator_.Submit(added, rank);
}

void HostedPools::Cancel(std::uint64_t stream, double now_ms) {
  const auto found = ids_.find(stream);
  if (found != ids_.end()) {
    const std::uint32_t request = found->second;
    streams_[request].aborted = coordinator_.Open(request);
    coordinator_.Cancel(request, now_ms);
  }
}

void HostedPools::Unstick(double now_ms) {
  if (coordinator_.Unstick(now_ms)) {
    return;
  }
  std::vector<std::uint32_t> in_flight;
  for (const auto& [request, stream] : streams_) {
    if (coordinator_.Open(request)) {
      in_flight.push_back(request);
    }
  }
  for (const std::uint32_t request : in_flight) {
    Tell(StreamEvent::Kind::kFailed, request, "the workers cannot go on with this request", now_ms);
    coordinator_.Cancel(request, now_ms);
  }
}

void HostedPools::OnRouted(sim::Pool pool, const router::Decision& decision, double /*now_ms*/) {
  const std::uint32_t id = decision.request.id;
  Stream& stream = streams_[id];
  const std::uint32_t place = coordinator_.FirstOf(pool) + decision.target.worker;
  stream.workers.push_back(place);
  workers_[place]->Begin(id, stream.number, decision.target.rank, stream.entered_ms);
}

void HostedPools::Tell(StreamEvent::Kind kind, std::uint32_t request, std::string text,
                       double now_ms) {
  batch_.push_back(
      {.kind = kind, .stream = streams_[request].number, .at_ms = now_ms, .text = std::move(text)});
}

void HostedPools::OnUnrouted(std::uint32_t request, const Error& error, double now_ms) {
  Tell(StreamEvent::Kind::kRefused, request, error.Text(), now_ms);
}

void HostedPools::OnRefused(std::uint32_t request, const engine::Rejection& why,
                            workload::TerminalStatus /*status*/, double now_ms) {
  Tell(StreamEvent::Kind::kRejected, request, why.Text(), now_ms);
}

void HostedPools::OnClosed(std::uint32_t request) {
  const auto found = streams_.find(request);
  const Stream stream = std::move(found->second);
  streams_.erase(found);
  ids_.erase(stream.number);
  for (const std::uint32_t place : stream.workers) {
    workers_[place]->Abandon(request, stream.aborted);
  }
  requests_.Drop(request);
}

}  // namespace dynosim::live
