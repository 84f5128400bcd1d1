// SPDX-License-Identifier: Apache-2.0
#include "live/engine_host.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <msgpack.hpp>
#include <zmq.hpp>

#include "base/hash.h"
#include "engine/settings.h"
#include "live/clock.h"
#include "live/live_request.h"
#include "live/zmq_publisher.h"
#include "timing/fixed.h"
#include "workload/request.h"

namespace dynosim::live {
namespace {

// Waits for the ends of streams.
class Ends {
 public:
  void Take(const std::vector<StreamEvent>& batch) {
    const std::lock_guard lock(mutex_);
    for (const StreamEvent& event : batch) {
      if (event.kind == StreamEvent::Kind::kTokens) {
        tokens_ += event.amount;
      } else if (event.kind == StreamEvent::Kind::kFinished) {
        ++ended_;
      }
    }
    changed_.notify_all();
  }
  void Await(std::size_t count) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), [&] { return ended_ >= count; }));
  }
  std::uint64_t tokens() {
    const std::lock_guard lock(mutex_);
    return tokens_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t ended_ = 0;
  std::uint64_t tokens_ = 0;
};

engine::EngineSettings Settings(engine::Backend backend) {
  engine::EngineSettings settings;
  settings.backend = backend;
  settings.block_size = 4;
  settings.num_gpu_blocks = 40;
  settings.timing = std::make_shared<timing::FixedTiming>(0.2, 0.05);
  return settings;
}

std::shared_ptr<LiveRequest> MakeRequest(std::uint32_t number, std::uint64_t output) {
  auto request = std::make_shared<LiveRequest>();
  request->model = "mock";
  for (std::uint32_t i = 0; i < 18; ++i) {
    request->prompt.push_back(i < 8 ? i : 100 * number + i);  // two blocks in common
  }
  request->output_tokens = output;
  request->output.seed = number;
  request->NameBlocks(4, 1000);
  return request;
}

// A cache as a subscriber knows it, from events alone. It checks every event on the way.
class Mirror {
 public:
  void Apply(std::uint64_t number, const std::string& payload) {
    ASSERT_EQ(number, next_++) << "numbers never skip";
    const msgpack::object_handle handle = msgpack::unpack(payload.data(), payload.size());
    const auto batch = handle.get().as<std::vector<msgpack::object>>();
    ASSERT_EQ(batch.size(), 3U);
    EXPECT_GT(batch[0].as<double>(), 1e9);
    for (const msgpack::object& event : batch[1].as<std::vector<msgpack::object>>()) {
      Event(event.as<std::map<std::string, msgpack::object>>());
    }
  }
  std::size_t size() const { return blocks_.size(); }
  const std::set<std::uint64_t>& blocks() const { return blocks_; }

 private:
  void Event(const std::map<std::string, msgpack::object>& event) {
    const auto hashes = event.at("block_hashes").as<std::vector<std::uint64_t>>();
    if (event.at("type").as<std::string>() == "BlockRemoved") {
      for (const std::uint64_t hash : hashes) {
        ASSERT_EQ(blocks_.erase(hash), 1U);
      }
      return;
    }
    ASSERT_EQ(event.at("type").as<std::string>(), "BlockStored");
    const auto tokens = event.at("token_ids").as<std::vector<std::uint32_t>>();
    const auto block_size = event.at("block_size").as<std::size_t>();
    ASSERT_EQ(tokens.size(), hashes.size() * block_size);
    const msgpack::object& parent = event.at("parent_block_hash");
    std::uint64_t last = parent.is_nil() ? 0 : parent.as<std::uint64_t>();
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      const std::uint64_t local = LocalBlockHash({tokens.data() + i * block_size, block_size});
      const bool first = i == 0 && parent.is_nil();
      ASSERT_EQ(hashes[i], first ? local : SequenceHash(last, local)) << "tokens are those hashed";
      last = hashes[i];
      blocks_.insert(last);
    }
  }

  std::uint64_t next_ = 0;
  std::set<std::uint64_t> blocks_;
};

std::uint64_t Number(const std::string& bytes) {
  std::uint64_t value = 0;
  for (const char c : bytes) {
    value = (value << 8U) | static_cast<unsigned char>(c);
  }
  return value;
}

std::vector<std::string> Receive(zmq::socket_t& socket) {
  std::vector<std::string> frames;
  zmq::message_t part;
  do {
    if (!socket.recv(part)) {
      return {};
    }
    frames.push_back(part.to_string());
  } while (part.more());
  return frames;
}

// Everything that a channel has published, as a new subscriber asks for it.
Mirror Replayed(zmq::context_t& context, std::uint16_t port) {
  zmq::socket_t dealer(context, zmq::socket_type::dealer);
  dealer.set(zmq::sockopt::rcvtimeo, 10000);
  dealer.set(zmq::sockopt::linger, 0);
  dealer.connect("tcp://127.0.0.1:" + std::to_string(port));
  dealer.send(zmq::str_buffer(""), zmq::send_flags::sndmore);
  dealer.send(zmq::const_buffer("\0\0\0\0\0\0\0\0", 8));
  Mirror mirror;
  while (true) {
    const std::vector<std::string> frames = Receive(dealer);
    EXPECT_EQ(frames.size(), 4U);
    if (frames.size() != 4 || Number(frames[2]) == ~0ULL) {
      return mirror;
    }
    mirror.Apply(Number(frames[2]), frames[3]);
  }
}

class KvEvents : public ::testing::TestWithParam<engine::Backend> {};

TEST_P(KvEvents, ASubscriberThatComesLateRebuildsThePoolFromEventsAlone) {
  std::unique_ptr<ZmqPublisher> publisher;
  std::uint16_t port = 21000;
  for (; publisher == nullptr && port < 21800; port += 2) {
    auto opened = ZmqPublisher::Open(
        {.channels = {
             {.port = port, .replay_port = static_cast<std::uint16_t>(port + 1), .topic = ""}}});
    if (opened) {
      publisher = *std::move(opened);
    }
  }
  ASSERT_NE(publisher, nullptr);
  port = static_cast<std::uint16_t>(port - 1);
  Ends ends;
  EngineHost host({.engine = Settings(GetParam()),
                   .workers = 1,
                   .kv_events = publisher.get(),
                   .deliver = [&](std::vector<StreamEvent>&& batch) { ends.Take(batch); }});
  host.Start();
  zmq::context_t context;
  for (std::uint32_t i = 0; i < 12; ++i) {
    host.Submit(0, workload::kNone, i + 1, MakeRequest(i, 30));
  }
  ends.Await(12);
  EXPECT_EQ(ends.tokens(), 360U);
  host.Stop();
  const Mirror mirror = Replayed(context, port);
  const engine::RankMetrics gauges = host.Stats(0).ranks[0].gauges;
  const std::uint64_t cached =
      GetParam() == engine::Backend::kSglang ? gauges.active_blocks : gauges.inactive_blocks;
  EXPECT_GT(mirror.size(), 20U);
  EXPECT_LE(mirror.size(), cached) << "a block may have several copies";
  EXPECT_GE(mirror.size() + 6, cached);
  EXPECT_EQ(Replayed(context, port).blocks(), mirror.blocks());
}

INSTANTIATE_TEST_SUITE_P(Engines, KvEvents,
                         ::testing::Values(engine::Backend::kVllm, engine::Backend::kSglang));

// A request counts from when its process had read it, but not from long before it came to its
// worker.
TEST(EngineHost, APassStartsWhenItsRequestWasReadAMillisecondBeforeAtMost) {
  engine::EngineSettings settings = Settings(engine::Backend::kVllm);
  settings.timing = std::make_shared<timing::FixedTiming>(30.0, 0.0);
  Ends ends;
  EngineHost host(
      {.engine = settings, .deliver = [&](std::vector<StreamEvent>&& batch) { ends.Take(batch); }});
  host.Start();
  const auto request = MakeRequest(1, 1);
  const auto begin = MonotonicClock::Point::clock::now();
  request->received = begin - std::chrono::seconds(5);
  host.Submit(0, workload::kNone, 1, request);
  ends.Await(1);
  const std::chrono::duration<double, std::milli> took =
      MonotonicClock::Point::clock::now() - begin;
  host.Stop();
  EXPECT_GE(took.count(), 29.0);
  const double ttft_s = host.Stats(0).ranks[0].ttft_s.sum();
  EXPECT_GE(ttft_s, 0.030);
  EXPECT_LE(ttft_s, 0.0015 + took.count() / 1000.0);
}

TEST(EngineHost, ACanceledStreamIsSilentAndFreesTheWorker) {
  engine::EngineSettings settings = Settings(engine::Backend::kVllm);
  settings.num_gpu_blocks = 4000;
  settings.timing = std::make_shared<timing::FixedTiming>(1.0, 1.0);
  Ends ends;
  EngineHost host({.engine = settings,
                   .workers = 2,
                   .deliver = [&](std::vector<StreamEvent>&& batch) { ends.Take(batch); }});
  host.Start();
  host.Submit(1, workload::kNone, 1, MakeRequest(1, 10000));
  host.Submit(1, workload::kNone, 2, MakeRequest(2, 20));
  while (host.Stats(1).ranks[0].output_tokens < 4) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  host.Cancel(1, 1);
  ends.Await(1);
  host.Submit(1, workload::kNone, 3, MakeRequest(3, 1));
  ends.Await(2);
  const WorkerStats stats = host.Stats(1);
  EXPECT_EQ(stats.ranks[0].gauges.running_requests, 0U);
  EXPECT_EQ(stats.ranks[0].gauges.active_blocks, 0U);
  EXPECT_EQ(stats.ranks[0].finished_abort, 1U);
  EXPECT_EQ(stats.ranks[0].finished_length, 2U);
}

}  // namespace
}  // namespace dynosim::live
