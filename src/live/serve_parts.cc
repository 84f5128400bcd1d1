// SPDX-License-Identifier: Apache-2.0
#include "live/serve_parts.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "live/dispatcher.h"
#include "live/engine_host.h"
#include "live/http_server.h"
#include "live/zmq_publisher.h"

namespace dynosim::live {

namespace {

// Between two looks whether the drain is done.
constexpr double kDrainPollMs = 20.0;
// Events that may be on their way to the frontend before the engines wait for it.
constexpr std::size_t kEventsMax = 1U << 16;
constexpr std::string_view kWorkerMark = "{worker}";

// Channels of all workers, worker by worker.
Result<std::unique_ptr<ZmqPublisher>> Open(const EventPorts& ports,
                                           const std::vector<std::uint32_t>& ranks,
                                           const std::vector<std::uint16_t>& first,
                                           const std::vector<std::uint16_t>& replay) {
  if (first.empty()) {
    return nullptr;
  }
  PublisherOptions options;
  options.replay_topic_frame = ports.replay_topic_frame;
  for (std::size_t worker = 0; worker < first.size(); ++worker) {
    for (std::uint32_t rank = 0; rank < ranks[worker]; ++rank) {
      const auto port = [&](const std::vector<std::uint16_t>& list) {
        return static_cast<std::uint16_t>(list.empty() ? 0 : list[worker] + rank);
      };
      std::string topic = ports.topic;
      if (const std::size_t at = topic.find(kWorkerMark); at != std::string::npos) {
        topic.replace(at, kWorkerMark.size(), std::to_string(worker));
      }
      options.channels.push_back({.host = ports.host,
                                  .port = port(first),
                                  .replay_port = port(replay),
                                  .topic = std::move(topic)});
    }
  }
  return ZmqPublisher::Open(options);
}

}  // namespace

Result<Publishers> OpenPublishers(const EventPorts& ports,
                                  const std::vector<std::uint32_t>& ranks) {
  Publishers out;
  DYNO_TRY(out.kv_events, Open(ports, ranks, ports.kv_events, ports.kv_replay));
  DYNO_TRY(out.pass_metrics, Open(ports, ranks, ports.pass_metrics, {}));
  return out;
}

void EventQueue::Push(std::vector<StreamEvent>&& batch) {
  bool wake = false;
  {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return events_.size() < kEventsMax || closed_; });
    wake = events_.empty() && changes_.empty();
    if (events_.empty()) {
      events_ = std::move(batch);
    } else {
      events_.insert(events_.end(), std::make_move_iterator(batch.begin()),
                     std::make_move_iterator(batch.end()));
    }
  }
  if (wake) {
    server_.Post([this] { Drain(); });
  }
}

void EventQueue::PushKv(std::vector<KvChange>&& changes) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    wake = events_.empty() && changes_.empty() && !changes.empty();
    changes_.insert(changes_.end(), std::make_move_iterator(changes.begin()),
                    std::make_move_iterator(changes.end()));
  }
  if (wake) {
    server_.Post([this] { Drain(); });
  }
}

void EventQueue::Close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  room_.notify_all();
}

void EventQueue::Drain() {
  taken_.clear();
  std::vector<KvChange> changes;
  {
    const std::lock_guard lock(mutex_);
    std::swap(taken_, events_);
    std::swap(changes, changes_);
  }
  room_.notify_all();
  if (!changes.empty()) {
    dispatcher_.OnKvChanges(changes);
  }
  dispatcher_.OnBatch(taken_);
}

void Shutdown::OnSignal() {
  if (draining_) {
    server_.Stop();
    return;
  }
  draining_ = true;
  drain_();
  Poll();
}

void Shutdown::Poll() {
  if (server_.open_exchanges() == 0 || left_ms_ <= 0.0) {
    server_.Stop();
    return;
  }
  left_ms_ -= kDrainPollMs;
  server_.After(kDrainPollMs, [this] { Poll(); });
}

}  // namespace dynosim::live
