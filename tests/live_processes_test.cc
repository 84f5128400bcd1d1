// SPDX-License-Identifier: Apache-2.0
// Workers and frontend in processes of their own: they find each other, lose each other, and go on.
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "live_server.h"

namespace dynosim::testing {
namespace {

constexpr std::string_view kChat = "/v1/chat/completions";

std::string ChatBody(int max_tokens) {
  return R"({"model":"mock","stream":true,"stream_options":{"include_usage":true},"seed":3,)"
         R"("messages":[{"role":"user","content":"Hello there"}],"max_tokens":)" +
         std::to_string(max_tokens) + "}";
}

class LiveProcesses : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "live_processes_" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::vector<std::string> WorkerFlags() const {
    return {"--discovery-dir", folder_, "--prefill-ms", "1", "--decode-ms", "2"};
  }
  static bool Models(const LiveServer& frontend, bool some) {
    for (int i = 0; i < 200; ++i) {
      const std::string body = Get(frontend.port(), "/v1/models").body;
      if ((body.find("\"mock\"") != std::string::npos) == some) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }
  static std::string Text(const HttpAnswer& answer) {
    std::string out;
    constexpr std::string_view kKey = R"("content":")";
    for (const std::string& event : Events(answer.body)) {
      const std::size_t at = event.find(kKey);
      if (at != std::string::npos) {
        out += event.substr(at + kKey.size(), event.find('"', at + kKey.size()) - at - kKey.size());
      }
    }
    return out;
  }

  std::string folder_;
};

TEST_F(LiveProcesses, AFrontendFindsWorkersServesAndForgetsThoseThatLeave) {
  const LiveServer frontend({"--discovery-dir", folder_}, "frontend");
  ASSERT_NE(frontend.port(), 0) << frontend.output();
  EXPECT_EQ(Post(frontend.port(), kChat, ChatBody(2)).status, 503);
  LiveServer mocker(WorkerFlags(), "mocker");
  ASSERT_NE(mocker.port(), 0) << mocker.output();
  ASSERT_TRUE(Models(frontend, true));
  for (int i = 0; i < 3; ++i) {
    const HttpAnswer answer = Post(frontend.port(), kChat, ChatBody(20));
    ASSERT_EQ(answer.status, 200);
    EXPECT_NE(answer.body.find(R"("completion_tokens":20)"), std::string::npos);
    EXPECT_EQ(Events(answer.body).back(), "[DONE]");
  }
  EXPECT_EQ(Metric(Get(mocker.port(), "/metrics").body, "vllm:e2e_request_latency_seconds_count"),
            3);
  mocker.Signal(SIGTERM);
  EXPECT_EQ(mocker.Wait(), 0);
  EXPECT_TRUE(Models(frontend, false));
}

TEST_F(LiveProcesses, AKilledWorkerFailsItsStreamOrTheStreamGoesOnElsewhere) {
  const LiveServer first(WorkerFlags(), "mocker");
  const std::string url = "http://127.0.0.1:" + std::to_string(first.port());
  std::string whole;
  {
    const LiveServer plain({"--worker", url}, "frontend");
    ASSERT_TRUE(Models(plain, true));
    whole = Text(Post(plain.port(), kChat, ChatBody(200)));
    LiveServer victim({"--prefill-ms", "1", "--decode-ms", "2"}, "mocker");
    const LiveServer alone({"--worker", "http://127.0.0.1:" + std::to_string(victim.port())},
                           "frontend");
    ASSERT_TRUE(Models(alone, true));
    HttpConnection stream(alone.port());
    ASSERT_TRUE(stream.Send(HttpText("POST", kChat, ChatBody(2000))));
    ASSERT_TRUE(stream.ReadUntil("data: ", 5));
    victim.Signal(SIGKILL);
    const HttpAnswer answer = stream.Read();
    EXPECT_NE(answer.body.find(R"("code":503)"), std::string::npos);
    EXPECT_EQ(Events(answer.body).back(), "[DONE]");
  }
  LiveServer second({"--prefill-ms", "1", "--decode-ms", "2"}, "mocker");
  const LiveServer frontend(
      {"--worker", "http://127.0.0.1:" + std::to_string(second.port()), "--migration-limit", "1"},
      "frontend");
  ASSERT_TRUE(Models(frontend, true));
  HttpConnection stream(frontend.port());
  ASSERT_TRUE(stream.Send(HttpText("POST", kChat, ChatBody(200))));
  ASSERT_TRUE(stream.ReadUntil("data: ", 5));
  stream.Close();
  const LiveServer both({"--worker", "http://127.0.0.1:" + std::to_string(second.port()),
                         "--worker", url, "--migration-limit", "1"},
                        "frontend");
  for (int i = 0;
       i < 100 && Get(both.port(), "/health").body.find(std::to_string(second.port()) + "-") ==
                      std::string::npos;
       ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ASSERT_TRUE(Models(both, true));
  // One of the two streams is on the worker that dies; both are complete and equal.
  HttpConnection one(both.port());
  HttpConnection two(both.port());
  ASSERT_TRUE(one.Send(HttpText("POST", kChat, ChatBody(200))));
  ASSERT_TRUE(two.Send(HttpText("POST", kChat, ChatBody(200))));
  ASSERT_TRUE(one.ReadUntil("data: ", 5));
  ASSERT_TRUE(two.ReadUntil("data: ", 5));
  second.Signal(SIGKILL);
  for (HttpConnection* connection : {&one, &two}) {
    const HttpAnswer answer = connection->Read();
    EXPECT_EQ(Text(answer), whole);
    EXPECT_NE(answer.body.find(R"("completion_tokens":200)"), std::string::npos);
  }
}

std::string TokensBody(int first) {
  std::string out = R"({"model":"mock","max_tokens":1,"prompt":[)";
  for (int i = 0; i < 40; ++i) {
    out += (i > 0 ? "," : "") + std::to_string(first + i);
  }
  return out + "]}";
}

// A worker process that publishes KV events with replay on some free ports.
std::unique_ptr<LiveServer> PublishingWorker(int& port) {
  for (; port < 23000; port += 2) {
    auto worker = std::make_unique<LiveServer>(
        std::vector<std::string>{"--block-size", "4", "--prefill-ms", "1", "--decode-ms", "1",
                                 "--zmq-kv-events-ports", std::to_string(port),
                                 "--zmq-replay-ports", std::to_string(port + 1)},
        "mocker");
    if (worker->port() != 0) {
      port += 2;
      return worker;
    }
  }
  return nullptr;
}

std::string UrlOf(const LiveServer& worker) {
  return "http://127.0.0.1:" + std::to_string(worker.port());
}

bool Served(const LiveServer& frontend, std::string_view body) {
  for (int i = 0; i < 200; ++i) {
    if (Post(frontend.port(), "/v1/completions", body).status == 200) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

TEST(LiveKvProcesses, AFrontendThatComesLateRoutesByWhatWorkersHaveCached) {
  int port = 22000 + getpid() % 300 * 2;
  const auto first = PublishingWorker(port);
  const auto second = PublishingWorker(port);
  ASSERT_TRUE(first && second);
  {
    const LiveServer one({"--worker", UrlOf(*first)}, "frontend");
    const LiveServer two({"--worker", UrlOf(*second)}, "frontend");
    ASSERT_TRUE(Served(one, TokensBody(1000)));
    ASSERT_TRUE(Served(two, TokensBody(2000)));
  }
  const LiveServer both(
      {"--worker", UrlOf(*first), "--worker", UrlOf(*second), "--router-mode", "kv"}, "frontend");
  // One event per worker, from the replay alone.
  const std::string applied = R"(dynamo_component_kv_cache_events_applied{event_type="stored")";
  for (int i = 0; i < 400 && Metric(Get(both.port(), "/metrics").body, applied) < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_GE(Metric(Get(both.port(), "/metrics").body, applied), 2);
  for (int i = 0; i < 3; ++i) {
    for (const int start : {1000, 2000}) {
      const std::string body = Post(both.port(), "/v1/completions", TokensBody(start)).body;
      EXPECT_NE(body.find(R"("cached_tokens":36)"), std::string::npos) << start << body;
    }
  }
}

}  // namespace
}  // namespace dynosim::testing
