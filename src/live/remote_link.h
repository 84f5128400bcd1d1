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
#include "live/engine_host.h"
#include "live/http_server.h"
#include "live/live_request.h"
#include "live/worker_link.h"

namespace dynosim::live {

struct WorkerAddress {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  friend bool operator==(const WorkerAddress&, const WorkerAddress&) = default;
};

// "http://host:port".
Result<WorkerAddress> ParseWorkerAddress(const std::string& url);

class RemoteLink final : public WorkerLink {
 public:
  // `deliver` gets the events of this worker's streams.
  RemoteLink(HttpServer& server, const WorkerAddress& address, std::uint32_t index, WorkerCard card,
             std::function<void(std::vector<StreamEvent>&&)> deliver);
  ~RemoteLink() override;

  const WorkerCard& card() const override { return card_; }
  void Submit(std::uint32_t rank, std::uint64_t stream,
              std::shared_ptr<const LiveRequest> request) override;
  void Cancel(std::uint64_t stream) override;

 private:
  struct State;
  WorkerCard card_;
  std::shared_ptr<State> state_;
};

// Asks a worker process for the cards of its workers; `done` gets them or the error.
void FetchCards(HttpServer& server, const WorkerAddress& address,
                std::function<void(Result<std::vector<WorkerCard>>)> done);

}  // namespace dynosim::live
