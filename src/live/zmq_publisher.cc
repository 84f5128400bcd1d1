// SPDX-License-Identifier: Apache-2.0
#include "live/zmq_publisher.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <zmq.hpp>

#include "base/result.h"

namespace dynosim::live {

namespace {

constexpr int kQueuedMessages = 100000;
// How long the replay thread sleeps before it looks whether it should end.
constexpr std::chrono::milliseconds kPoll{100};

// Frames of one message; an empty optional part stays an empty frame.
bool SendFrames(zmq::socket_t& socket, std::initializer_list<std::string_view> frames) {
  std::size_t left = frames.size();
  for (const std::string_view frame : frames) {
    --left;
    const auto flags =
        zmq::send_flags::dontwait | (left > 0 ? zmq::send_flags::sndmore : zmq::send_flags::none);
    if (!socket.send(zmq::buffer(frame.data(), frame.size()), flags)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::array<char, 8> BigEndian(std::uint64_t value) {
  std::array<char, 8> out{};
  for (std::size_t i = 0; i < 8; ++i) {
    out[i] = static_cast<char>(value >> (56 - 8 * i));
  }
  return out;
}

std::uint64_t FromBigEndian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char c : bytes) {
    value = (value << 8U) | static_cast<unsigned char>(c);
  }
  return value;
}

struct ZmqPublisher::State {
  struct Channel {
    explicit Channel(zmq::context_t& context) : pub(context, zmq::socket_type::pub) {}
    zmq::socket_t pub;
    zmq::socket_t router;
    std::string topic;
    std::uint64_t next = 0;
    // Kept messages; the last one has number next - 1.
    std::mutex mutex;
    std::deque<std::string> kept;
  };

  void Replay();
  void Answer(Channel& channel);

  PublisherOptions options;
  zmq::context_t context{1};
  std::vector<std::unique_ptr<Channel>> channels;
  std::atomic<bool> stop = false;
  std::thread thread;
};

Result<std::unique_ptr<ZmqPublisher>> ZmqPublisher::Open(const PublisherOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  bool replay = false;
  std::string address;
  try {
    for (const ChannelOptions& wanted : options.channels) {
      auto channel = std::make_unique<State::Channel>(state->context);
      channel->topic = wanted.topic;
      channel->pub.set(zmq::sockopt::linger, 0);
      channel->pub.set(zmq::sockopt::sndhwm, kQueuedMessages);
      channel->pub.set(zmq::sockopt::tcp_keepalive, 1);
      address = fmt::format("tcp://{}:{}", wanted.host, wanted.port);
      channel->pub.bind(address);
      if (wanted.replay_port != 0) {
        replay = true;
        channel->router = zmq::socket_t(state->context, zmq::socket_type::router);
        channel->router.set(zmq::sockopt::linger, 0);
        channel->router.set(zmq::sockopt::sndhwm, 0);
        address = fmt::format("tcp://{}:{}", wanted.host, wanted.replay_port);
        channel->router.bind(address);
      }
      state->channels.push_back(std::move(channel));
    }
  } catch (const zmq::error_t& error) {
    return FailedError("", fmt::format("cannot publish on {}: {}", address, error.what()));
  }
  auto publisher = std::make_unique<ZmqPublisher>(std::move(state));
  if (replay) {
    publisher->state_->thread = std::thread([s = publisher->state_.get()] { s->Replay(); });
  }
  return publisher;
}

ZmqPublisher::ZmqPublisher(std::unique_ptr<State> state) : state_(std::move(state)) {}

ZmqPublisher::~ZmqPublisher() {
  state_->stop = true;
  if (state_->thread.joinable()) {
    state_->thread.join();
  }
}

bool ZmqPublisher::Send(std::size_t place, std::string payload) {
  State::Channel& channel = *state_->channels[place];
  const std::array<char, 8> number = BigEndian(channel.next);
  bool sent = false;
  try {
    sent = SendFrames(channel.pub, {channel.topic, {number.data(), number.size()}, payload});
  } catch (const zmq::error_t&) {
    sent = false;
  }
  const std::lock_guard lock(channel.mutex);
  ++channel.next;
  if (channel.router) {
    channel.kept.push_back(std::move(payload));
    if (channel.kept.size() > state_->options.kept) {
      channel.kept.pop_front();
    }
  }
  return sent;
}

void ZmqPublisher::State::Replay() {
  std::vector<zmq::pollitem_t> items;
  std::vector<Channel*> asked;
  for (const auto& channel : channels) {
    if (channel->router) {
      items.push_back(
          {.socket = channel->router.handle(), .fd = 0, .events = ZMQ_POLLIN, .revents = 0});
      asked.push_back(channel.get());
    }
  }
  while (!stop) {
    try {
      zmq::poll(items, kPoll);
      for (std::size_t i = 0; i < items.size(); ++i) {
        if ((items[i].revents & ZMQ_POLLIN) != 0) {
          Answer(*asked[i]);
        }
      }
    } catch (const zmq::error_t&) {
      continue;  // an interrupted poll, or a peer that has left
    }
  }
}

// One request: [identity, empty, start]. Anything else is ignored.
void ZmqPublisher::State::Answer(Channel& channel) {
  std::vector<std::string> frames;
  zmq::message_t part;
  do {
    if (!channel.router.recv(part, zmq::recv_flags::none)) {
      return;
    }
    frames.push_back(part.to_string());
  } while (part.more());
  if (frames.size() < 3 || frames[2].size() != 8) {
    return;
  }
  const std::string& identity = frames[0];
  std::uint64_t number = FromBigEndian(frames[2]);
  std::vector<std::string> found;
  {
    const std::lock_guard lock(channel.mutex);
    const std::uint64_t first = channel.next - channel.kept.size();
    number = std::max(number, first);
    for (std::uint64_t i = number; i < channel.next; ++i) {
      found.push_back(channel.kept[i - first]);
    }
  }
  const auto reply = [&](std::string_view topic, std::uint64_t n, std::string_view payload) {
    const std::array<char, 8> bytes = BigEndian(n);
    const std::string_view text(bytes.data(), bytes.size());
    return options.replay_topic_frame
               ? SendFrames(channel.router, {identity, "", topic, text, payload})
               : SendFrames(channel.router, {identity, "", text, payload});
  };
  for (const std::string& payload : found) {
    reply(channel.topic, number++, payload);
  }
  reply("", kReplayEnd, "");
}

}  // namespace dynosim::live
