// SPDX-License-Identifier: Apache-2.0
// HostedPools: the streams of a prefill and a decode pool in one engine host. Belongs to the host's
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "live/engine_host.h"
#include "live/handoff_coordinator.h"
#include "live/hosted_worker.h"
#include "live/live_request.h"
#include "sim/outcome.h"

namespace dynosim::live {

class HostedPools final : public sim::HandoffListener {
 public:
  HostedPools(const HandoffOptions& options, SharedRequests& requests,
              std::vector<StreamEvent>& batch)
      : requests_(requests), batch_(batch), coordinator_(options, requests.table(), *this) {}

  HandoffCoordinator& coordinator() { return coordinator_; }
  // In order of their places.
  void AddWorker(HostedWorker& worker) {
    workers_.push_back(&worker);
    coordinator_.AddWorker(worker.driver());
  }

  void Submit(std::uint64_t stream, std::uint32_t rank, std::shared_ptr<const LiveRequest> request,
              double now_ms);
  void Cancel(std::uint64_t stream, double now_ms);
  // Nothing more will happen by itself: frees a stuck rank, or fails what is left.
  void Unstick(double now_ms);

  void OnRouted(sim::Pool pool, const router::Decision& decision, double now_ms) override;
  void OnUnrouted(std::uint32_t request, const Error& error, double now_ms) override;
  void OnRefused(std::uint32_t request, const engine::Rejection& why,
                 workload::TerminalStatus status, double now_ms) override;
  void OnStep(sim::HandoffStep, std::uint32_t, double, double) override {}
  void OnClosed(std::uint32_t request) override;

 private:
  struct Stream {
    std::uint64_t number = 0;
    double entered_ms = 0.0;
    bool aborted = false;
    std::vector<std::uint32_t> workers;  // places that it has been at
  };
  void Tell(StreamEvent::Kind kind, std::uint32_t request, std::string text, double now_ms);

  SharedRequests& requests_;
  std::vector<StreamEvent>& batch_;
  HandoffCoordinator coordinator_;
  std::vector<HostedWorker*> workers_;
  std::map<std::uint32_t, Stream> streams_;     // by request
  std::map<std::uint64_t, std::uint32_t> ids_;  // stream number -> request
};

}  // namespace dynosim::live
