// SPDX-License-Identifier: Apache-2.0
// KvSubscriber: follows the KV events of workers in other processes over ZeroMQ (chapter 95,
// section 9). What was published before, or got lost, is asked for again where a worker replays.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "live/kv_event_codec.h"

namespace dynosim::live {

struct KvChannel {
  std::string worker;  // id of its card
  std::uint32_t rank = 0;
  std::string events;  // "tcp://address:port"
  std::string replay;  // empty: none
  friend bool operator==(const KvChannel&, const KvChannel&) = default;
};

class KvSubscriber {
 public:
  // Updates of a channel, in order; on a thread of the subscriber.
  using Deliver = std::function<void(const KvChannel& channel, std::vector<KvUpdate>&& updates)>;
  explicit KvSubscriber(Deliver deliver);
  KvSubscriber(const KvSubscriber&) = delete;
  KvSubscriber& operator=(const KvSubscriber&) = delete;
  ~KvSubscriber();

  // Follows these channels from now on, and no others.
  void Follow(std::vector<KvChannel> channels);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dynosim::live
