// SPDX-License-Identifier: Apache-2.0
// ZmqPublisher: publishes numbered messages of ranks over ZeroMQ, and replays those it has kept.
// Each channel is a PUB socket and, on request, a ROUTER socket that answers "everything from this
// number on" (chapter 95, section 9). Sending never blocks: a subscriber that is too slow misses
// messages, sees it in the numbers, and asks for them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace dynosim::live {

// Numbers as they stand in messages, and the one that ends a replay.
std::array<char, 8> BigEndian(std::uint64_t value);
std::uint64_t FromBigEndian(std::string_view bytes);
inline constexpr std::uint64_t kReplayEnd = ~0ULL;

struct ChannelOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::uint16_t replay_port = 0;  // 0: no replay
  std::string topic;
};

struct PublisherOptions {
  std::vector<ChannelOptions> channels;
  std::size_t kept = 10000;        // messages that can be replayed
  bool replay_topic_frame = true;  // false: replies as vLLM itself sends them
};

class ZmqPublisher {
  struct State;

 public:
  // Binds every socket, or fails with the address that is taken.
  static Result<std::unique_ptr<ZmqPublisher>> Open(const PublisherOptions& options);
  explicit ZmqPublisher(std::unique_ptr<State> state);  // for Open
  ZmqPublisher(const ZmqPublisher&) = delete;
  ZmqPublisher& operator=(const ZmqPublisher&) = delete;
  ~ZmqPublisher();

  // From one thread per channel. False if the message was not accepted; its number is used up, and
  // it is kept for replay.
  bool Send(std::size_t channel, std::string payload);

 private:
  std::unique_ptr<State> state_;
};

}  // namespace dynosim::live
