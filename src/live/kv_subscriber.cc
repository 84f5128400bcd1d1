// SPDX-License-Identifier: Apache-2.0
#include "live/kv_subscriber.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <zmq.hpp>

#include "live/kv_event_codec.h"
#include "live/zmq_publisher.h"

namespace dynosim::live {

namespace {

// How long the thread sleeps before it looks whether other channels are wanted.
constexpr std::chrono::milliseconds kLook{50};
constexpr std::size_t kHeldMax = 100000;  // messages that may wait for those before them

std::vector<std::string> Receive(zmq::socket_t& socket) {
  std::vector<std::string> frames;
  zmq::message_t part;
  do {
    if (!socket.recv(part, zmq::recv_flags::dontwait)) {
      return frames;
    }
    frames.push_back(part.to_string());
  } while (part.more());
  return frames;
}

// One channel. Live messages wait until those before them have been replayed.
class Following {
 public:
  Following(zmq::context_t& context, KvChannel channel)
      : channel_(std::move(channel)), sub_(context, zmq::socket_type::sub) {
    sub_.set(zmq::sockopt::linger, 0);
    sub_.set(zmq::sockopt::rcvhwm, 0);
    sub_.set(zmq::sockopt::subscribe, "");
    sub_.connect(channel_.events);
    if (!channel_.replay.empty()) {
      dealer_ = zmq::socket_t(context, zmq::socket_type::dealer);
      dealer_.set(zmq::sockopt::linger, 0);
      dealer_.connect(channel_.replay);
      Ask();
    }
  }

  const KvChannel& channel() const { return channel_; }
  void AddTo(std::vector<zmq::pollitem_t>& items) {
    items.push_back({.socket = sub_.handle(), .fd = 0, .events = ZMQ_POLLIN, .revents = 0});
    if (dealer_) {
      items.push_back({.socket = dealer_.handle(), .fd = 0, .events = ZMQ_POLLIN, .revents = 0});
    }
  }

  // Everything that has come and is next in order.
  std::vector<KvUpdate> Take() {
    std::vector<KvUpdate> out;
    if (dealer_) {
      for (auto frames = Receive(dealer_); frames.size() >= 3; frames = Receive(dealer_)) {
        // With or without a topic frame.
        const std::uint64_t number = FromBigEndian(frames[frames.size() - 2]);
        if (number == kReplayEnd) {
          // What is still missing will never come.
          asked_ = false;
          next_ = held_.empty() ? next_ : std::max(next_, held_.begin()->first);
        } else {
          next_ = std::max(next_, held_.empty() && out.empty() && next_ == 0 ? number : next_);
          held_.try_emplace(number, std::move(frames.back()));
        }
        Apply(out);
      }
    }
    for (auto frames = Receive(sub_); frames.size() == 3; frames = Receive(sub_)) {
      const std::uint64_t number = FromBigEndian(frames[1]);
      if (!dealer_ || held_.size() > kHeldMax) {
        next_ = std::max(next_, number);  // nobody can tell what was before
      }
      held_.try_emplace(number, std::move(frames[2]));
      Apply(out);
    }
    if (dealer_ && !asked_ && !held_.empty()) {
      Ask();
    }
    return out;
  }

 private:
  void Ask() {
    asked_ = true;
    const std::array<char, 8> number = BigEndian(next_);
    dealer_.send(zmq::str_buffer(""), zmq::send_flags::sndmore);
    dealer_.send(zmq::buffer(number));
  }
  void Apply(std::vector<KvUpdate>& out) {
    while (!held_.empty() && held_.begin()->first <= next_) {
      if (held_.begin()->first == next_) {
        ++next_;
        for (KvUpdate& update : DecodeKvEvents(held_.begin()->second)) {
          out.push_back(std::move(update));
        }
      }
      held_.erase(held_.begin());
    }
  }

  KvChannel channel_;
  zmq::socket_t sub_;
  zmq::socket_t dealer_;
  bool asked_ = false;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, std::string> held_;  // by number
};

}  // namespace

struct KvSubscriber::State {
  void Run();
  void Adjust();

  Deliver deliver;
  zmq::context_t context{1};
  std::mutex mutex;
  std::vector<KvChannel> wanted;
  std::atomic<bool> changed = false;
  std::atomic<bool> stop = false;
  std::vector<std::unique_ptr<Following>> following;  // of the thread
  std::thread thread;
};

void KvSubscriber::State::Adjust() {
  std::vector<KvChannel> channels;
  {
    const std::lock_guard lock(mutex);
    channels = wanted;
  }
  std::erase_if(following, [&](const auto& f) {
    return std::ranges::find(channels, f->channel()) == channels.end();
  });
  for (const KvChannel& channel : channels) {
    const bool known =
        std::ranges::any_of(following, [&](const auto& f) { return f->channel() == channel; });
    if (known) {
      continue;
    }
    try {
      following.push_back(std::make_unique<Following>(context, channel));
    } catch (const zmq::error_t& error) {
      std::fprintf(stderr, "dynosim: warning: no KV events from %s: %s\n", channel.events.c_str(),
                   error.what());
    }
  }
}

void KvSubscriber::State::Run() {
  while (!stop) {
    if (changed.exchange(false)) {
      Adjust();
    }
    std::vector<zmq::pollitem_t> items;
    for (const auto& f : following) {
      f->AddTo(items);
    }
    try {
      if (items.empty()) {
        std::this_thread::sleep_for(kLook);
      } else {
        zmq::poll(items, kLook);
      }
      for (const auto& f : following) {
        if (auto updates = f->Take(); !updates.empty()) {
          deliver(f->channel(), std::move(updates));
        }
      }
    } catch (const zmq::error_t&) {
      continue;  // an interrupted poll, or a peer that has left
    }
  }
  following.clear();
}

KvSubscriber::KvSubscriber(Deliver deliver) : state_(std::make_unique<State>()) {
  state_->deliver = std::move(deliver);
  state_->thread = std::thread([state = state_.get()] { state->Run(); });
}

KvSubscriber::~KvSubscriber() {
  state_->stop = true;
  state_->thread.join();
}

void KvSubscriber::Follow(std::vector<KvChannel> channels) {
  const std::lock_guard lock(state_->mutex);
  state_->wanted = std::move(channels);
  state_->changed = true;
}

}  // namespace dynosim::live
