// SPDX-License-Identifier: Apache-2.0
// Live serving over a prefill and a decode pool: answers, the transfer between the pools, and what
// is left in both after clients that go away.
#include <chrono>
#include <cstdint>
#include <ratio>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "live_server.h"

namespace dynosim::testing {
namespace {

constexpr std::string_view kPath = "/v1/completions";

// `bandwidth`: GB/s, for a kilobyte per token.
std::vector<std::string> Pools(const std::string& backend, const std::string& bandwidth,
                               const std::string& decode_ms = "0.5") {
  const std::string engine = R"({"engine":{"backend":")" + backend +
                             R"(","block_size":4,"num_gpu_blocks":200,"timing_model":)"
                             R"({"type":"fixed","prefill_ms":1,"decode_ms":)" +
                             decode_ms + "},";
  return {"--prefill-engine-args",
          engine + R"("kv_transfer_bytes_per_token":1000,"kv_transfer_bandwidth":)" + bandwidth +
              R"(,"worker_type":"prefill"}})",
          "--decode-engine-args",
          engine + R"("worker_type":"decode"}})",
          "--num-prefill-workers",
          "2",
          "--num-decode-workers",
          "2"};
}

std::vector<std::string> With(std::vector<std::string> flags, std::vector<std::string> more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

// Every gauge of every worker is back at zero.
bool Empties(std::uint16_t port, const std::string& backend) {
  const std::vector<std::string> series =
      backend == "sglang"
          ? std::vector<std::string>{"sglang:num_running_reqs", "sglang:num_queue_reqs"}
          : std::vector<std::string>{"vllm:num_requests_running", "vllm:num_requests_waiting",
                                     "vllm:kv_cache_usage_perc"};
  for (int i = 0; i < 400; ++i) {
    const std::string page = Get(port, "/metrics").body;
    bool zero = Metric(page, "dynamo_frontend_inflight_requests") == 0;
    for (const std::string& name : series) {
      zero = zero && Metric(page, name) == 0;
    }
    if (zero) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

class LivePoolsServing : public ::testing::TestWithParam<std::string> {};

TEST_P(LivePoolsServing, AStreamHasAllTokensAndWaitsForTheTransfer) {
  // 40 tokens of a kilobyte at 1 MB/s take 40 ms.
  const LiveServer server(Pools(GetParam(), "0.001"));
  ASSERT_NE(server.port(), 0) << server.output();
  const auto start = std::chrono::steady_clock::now();
  const HttpAnswer answer = Post(server.port(), kPath, StreamBody(1, 40, 7));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(answer.status, 200);
  // Seven tokens, the finish reason, usage and the end.
  EXPECT_EQ(Events(answer.body).size(), 10U) << answer.body;
  EXPECT_NE(answer.body.find(R"("prompt_tokens":40,"completion_tokens":7)"), std::string::npos);
  EXPECT_GE(took.count(), 1 + 40 + 7 * 0.5);
  EXPECT_TRUE(Empties(server.port(), GetParam()));
}

TEST_P(LivePoolsServing, TheKvRouterFindsThePrefillWorkerThatHasThePrompt) {
  const LiveServer server(With(Pools(GetParam(), "0"), {"--router-mode", "kv"}));
  for (int i = 0; i < 4; ++i) {
    const HttpAnswer answer = Post(server.port(), kPath, StreamBody(1, 40, 2));
    const std::string cached = R"("cached_tokens":)" + std::string(i == 0 ? "0" : "3");
    EXPECT_NE(answer.body.find(cached), std::string::npos) << i << answer.body;
  }
}

TEST_P(LivePoolsServing, ClientsThatLeaveAtAnyStepLeaveNothingBehind) {
  const LiveServer server(Pools(GetParam(), "0.002", "3"));
  ASSERT_EQ(Post(server.port(), kPath, StreamBody(1, 8, 1)).status, 200);
  for (int i = 0; i < 30; ++i) {
    HttpConnection connection(server.port());
    ASSERT_TRUE(connection.Send(HttpText("POST", kPath, StreamBody(1 + i % 7, 20 + i, 1000))));
    std::this_thread::sleep_for(std::chrono::milliseconds(2 * i));
    connection.Close();
  }
  EXPECT_TRUE(Empties(server.port(), GetParam())) << Get(server.port(), "/metrics").body;
  EXPECT_EQ(Post(server.port(), kPath, StreamBody(1, 30, 3)).status, 200);
}

TEST_P(LivePoolsServing, APromptThatThePoolsCanNeverHoldIsABadRequest) {
  const LiveServer server(Pools(GetParam(), "0"));
  const HttpAnswer answer = Post(server.port(), kPath, StreamBody(1, 900, 2));
  EXPECT_EQ(answer.status, 400) << answer.body;
  EXPECT_EQ(Post(server.port(), kPath, StreamBody(1, 30, 3)).status, 200);
  EXPECT_TRUE(Empties(server.port(), GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Backends, LivePoolsServing, ::testing::Values("vllm", "sglang"),
                         [](const auto& backend) { return backend.param; });

TEST(LivePoolsFlags, WhatDoesNotFitIsRefusedByName) {
  const auto refused = [](std::vector<std::string> flags, std::string_view why) {
    LiveServer server(std::move(flags));
    EXPECT_EQ(server.Wait(), 2) << why;
    EXPECT_NE(server.output().find(why), std::string::npos) << server.output();
  };
  refused({"--num-prefill-workers", "2"}, "--num-prefill-workers");
  refused({"--prefill-engine-args", "{}"}, "--decode-engine-args");
  refused(With(Pools("vllm", "0"), {"--num-workers", "2"}), "--num-workers");
  refused(With(Pools("vllm", "0"), {"--zmq-kv-events-ports", "7001"}), "--zmq-kv-events-ports");
  refused(Pools("trtllm", "0"), "trtllm");
}

TEST(LivePoolsProcesses, AMockerWithPoolsServesAFrontend) {
  const LiveServer mocker(Pools("vllm", "0"), "mocker");
  ASSERT_NE(mocker.port(), 0) << mocker.output();
  const LiveServer frontend({"--worker", "http://127.0.0.1:" + std::to_string(mocker.port())},
                            "frontend");
  HttpAnswer answer;
  for (int i = 0; i < 200 && answer.status != 200; ++i) {
    answer = Post(frontend.port(), kPath, StreamBody(1, 40, 5));
    std::this_thread::sleep_for(std::chrono::milliseconds(answer.status == 200 ? 0 : 20));
  }
  EXPECT_NE(answer.body.find(R"("completion_tokens":5)"), std::string::npos) << answer.body;
}

}  // namespace
}  // namespace dynosim::testing
