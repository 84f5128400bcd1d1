// SPDX-License-Identifier: Apache-2.0
// RemoteLink: a worker of another process, reached over HTTP/1.1 streams with kept connections.
// Belongs to the server's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/transfer.h"
#include "live/engine_host.h"
#include "live/http_client.h"
#include "live/http_server.h"
#include "live/live_request.h"
#include "live/worker_link.h"

namespace dynosim::live {

class RemoteLink final : public WorkerLink {
 public:
  // `deliver` gets the events of this worker's streams.
  RemoteLink(HttpServer& server, const HttpAddress& address, std::uint32_t index, WorkerCard card,
             std::function<void(std::vector<StreamEvent>&&)> deliver);
  ~RemoteLink() override;

  const WorkerCard& card() const override { return card_; }
  void Submit(std::uint32_t rank, std::uint64_t stream,
              std::shared_ptr<const LiveRequest> request) override;
  void Cancel(std::uint64_t stream) override;
  void Proceed(std::uint64_t stream, const engine::TransferTerms& terms) override;

 private:
  struct State;
  WorkerCard card_;
  std::shared_ptr<State> state_;
};

// Asks a worker process for the cards of its workers; `done` gets them or the error.
void FetchCards(HttpServer& server, const HttpAddress& address,
                std::function<void(Result<std::vector<WorkerCard>>)> done);

}  // namespace dynosim::live
