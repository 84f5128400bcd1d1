// SPDX-License-Identifier: Apache-2.0
// What the live commands share: the way from engine threads to the server's thread, the end of a
// process, and the ZeroMQ channels of the workers.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "live/dispatcher.h"
#include "live/engine_host.h"
#include "live/http_server.h"
#include "live/zmq_publisher.h"

namespace dynosim::live {

// ZeroMQ sockets of workers: one first port per worker, rank r uses port + r. Empty: none.
struct EventPorts {
  std::vector<std::uint16_t> kv_events;
  std::vector<std::uint16_t> kv_replay;
  std::vector<std::uint16_t> pass_metrics;
  std::string host = "127.0.0.1";
  std::string topic;  // {worker} is replaced
  bool positional = false;
  bool replay_topic_frame = true;
};

struct Publishers {
  std::unique_ptr<ZmqPublisher> kv_events;     // null: none
  std::unique_ptr<ZmqPublisher> pass_metrics;  // null: none
};
// `ranks`: of each worker. Lists of ports may be shorter: the last workers have none then.
Result<Publishers> OpenPublishers(const EventPorts& ports, const std::vector<std::uint32_t>& ranks);

// Brings batches from engine threads to the frontend's thread. Several batches that come while the
// frontend is busy make one, so writes are merged under load. A full queue stalls the engines.
class EventQueue {
 public:
  EventQueue(HttpServer& server, Dispatcher& dispatcher)
      : server_(server), dispatcher_(dispatcher) {}

  void Push(std::vector<StreamEvent>&& batch);
  void PushKv(std::vector<KvChange>&& changes);
  // Nobody waits any more.
  void Close();

 private:
  void Drain();

  HttpServer& server_;
  Dispatcher& dispatcher_;
  std::mutex mutex_;
  std::condition_variable room_;
  std::vector<StreamEvent> events_, taken_;
  std::vector<KvChange> changes_;  // before the events that follow them
  bool closed_ = false;
};

// First signal: no new work, streams go on for a while. Second signal: the end.
class Shutdown {
 public:
  // `drain` is called at the first signal. `drain_ms` may be infinite.
  Shutdown(HttpServer& server, std::function<void()> drain, double drain_ms)
      : server_(server), drain_(std::move(drain)), left_ms_(drain_ms) {}

  void OnSignal();

 private:
  void Poll();

  HttpServer& server_;
  std::function<void()> drain_;
  double left_ms_;
  bool draining_ = false;
};

}  // namespace dynosim::live
