// SPDX-License-Identifier: Apache-2.0
// Prefill workers, decode workers and a frontend in processes of their own: answers, the transfer
// between them, and what is left after clients and processes that go away at any step.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <ratio>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/cases_for_test.h"
#include "live_server.h"

namespace dynosim::testing {
namespace {

using Flags = std::vector<std::string>;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr std::string_view kPath = "/v1/completions";

Flags operator+(Flags flags, const Flags& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

void Sleep(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

template <class F>
bool Soon(F&& condition) {
  for (int i = 0; i < 500; ++i) {
    if (condition()) {
      return true;
    }
    Sleep(10);
  }
  return false;
}

// Nothing runs, waits or holds blocks on a worker.
bool Empties(const LiveServer& worker, const std::string& backend = "vllm") {
  const Flags series = backend == "sglang"
                           ? Flags{"sglang:num_running_reqs", "sglang:num_queue_reqs"}
                           : Flags{"vllm:num_requests_running", "vllm:num_requests_waiting",
                                   "vllm:kv_cache_usage_perc"};
  return Soon([&] {
    const std::string page = Get(worker.port(), "/metrics").body;
    for (const std::string& name : series) {
      if (Metric(page, name) != 0) {
        return false;
      }
    }
    return true;
  });
}

// Blocks are held on a worker.
bool Holds(const LiveServer& worker) {
  return Soon(
      [&] { return Metric(Get(worker.port(), "/metrics").body, "vllm:kv_cache_usage_perc") > 0; });
}

class LiveHandoffProcesses : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "live_handoffs_" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Flags Common() const { return {"--discovery-dir", folder_}; }
  // `bandwidth`: GB/s, for a kilobyte per token.
  std::unique_ptr<LiveServer> Prefill(const std::string& bandwidth, const Flags& more = {}) const {
    return Mocker(
        "prefill",
        Flags{"--kv-bytes-per-token", "1000", "--kv-transfer-bandwidth", bandwidth} + more);
  }
  std::unique_ptr<LiveServer> Decode(const std::string& decode_ms = "0.5",
                                     const Flags& more = {}) const {
    return Mocker("decode", more, decode_ms);
  }
  std::unique_ptr<LiveServer> Mocker(const std::string& role, const Flags& more,
                                     const std::string& decode_ms = "0.5") const {
    return std::make_unique<LiveServer>(
        Common() +
            Flags{"--engine-type", backend_, "--block-size", "4", "--num-gpu-blocks-override",
                  "200", "--prefill-ms", "1", "--decode-ms", decode_ms, "--disaggregation-mode",
                  role} +
            more,
        "mocker");
  }
  std::unique_ptr<LiveServer> Frontend(int instances, const Flags& more = {}) const {
    auto out = std::make_unique<LiveServer>(Common() + more, "frontend");
    EXPECT_TRUE(Soon([&] { return Instances(*out) == instances; })) << instances;
    return out;
  }
  static int Instances(const LiveServer& frontend) {
    const std::string body = Get(frontend.port(), "/health").body;
    int count = 0;
    for (std::size_t at = body.find("instance_id"); at != std::string::npos;
         at = body.find("instance_id", at + 1)) {
      ++count;
    }
    return count;
  }
  static bool Served(const LiveServer& frontend) {
    const HttpAnswer answer = Post(frontend.port(), kPath, StreamBody(1, 30, 3));
    return answer.status == 200 &&
           answer.body.find(R"("completion_tokens":3)") != std::string::npos;
  }

  std::string folder_;
  std::string backend_ = "vllm";
};

class LiveHandoffBackends : public LiveHandoffProcesses,
                            public ::testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    LiveHandoffProcesses::SetUp();
    backend_ = GetParam();
  }
};

TEST_P(LiveHandoffBackends, AStreamHasAllTokensAndWaitsForTheTransfer) {
  // 40 tokens of a kilobyte at 1 MB/s take 40 ms.
  const auto prefill = Prefill("0.001");
  const auto decode = Decode();
  const auto frontend = Frontend(2);
  const auto start = std::chrono::steady_clock::now();
  const HttpAnswer answer = Post(frontend->port(), kPath, StreamBody(1, 40, 7));
  const Milliseconds took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(answer.status, 200) << answer.body;
  // Seven tokens, the finish reason, usage and the end.
  EXPECT_EQ(Events(answer.body).size(), 10U) << answer.body;
  EXPECT_NE(answer.body.find(R"("prompt_tokens":40,"completion_tokens":7)"), std::string::npos);
  EXPECT_NE(answer.body.find(R"("cached_tokens":0)"), std::string::npos) << answer.body;
  EXPECT_GE(took.count(), 1 + 40 + 7 * 0.5);
  EXPECT_TRUE(Empties(*prefill, backend_));
  EXPECT_TRUE(Empties(*decode, backend_));
  // The prompt is in the prefill worker's cache now.
  const HttpAnswer again = Post(frontend->port(), kPath, StreamBody(1, 40, 2));
  EXPECT_NE(again.body.find(R"("cached_tokens":3)"), std::string::npos) << again.body;
}

TEST_P(LiveHandoffBackends, ClientsThatLeaveAtAnyStepLeaveNothingBehind) {
  const auto prefill = Prefill("0.002");
  const auto decode = Decode("3");
  const auto frontend = Frontend(2);
  for (int i = 0; i < 30; ++i) {
    HttpConnection connection(frontend->port());
    ASSERT_TRUE(connection.Send(HttpText("POST", kPath, StreamBody(1 + i % 7, 20 + i, 600))));
    Sleep(2 * i);
    connection.Close();
  }
  EXPECT_TRUE(Empties(*prefill, backend_)) << Get(prefill->port(), "/metrics").body;
  EXPECT_TRUE(Empties(*decode, backend_)) << Get(decode->port(), "/metrics").body;
  EXPECT_TRUE(Becomes(frontend->port(), "dynamo_frontend_inflight_requests", 0));
  EXPECT_TRUE(Served(*frontend));
}

TEST_P(LiveHandoffBackends, APromptThatNoWorkerCanHoldIsABadRequest) {
  const auto prefill = Prefill("0");
  const auto decode = Decode();
  const auto frontend = Frontend(2);
  EXPECT_EQ(Post(frontend->port(), kPath, StreamBody(1, 900, 2)).status, 400);
  EXPECT_TRUE(Served(*frontend));
  EXPECT_TRUE(Empties(*prefill, backend_));
  EXPECT_TRUE(Empties(*decode, backend_));
}

TEST_P(LiveHandoffBackends, ManyRequestsShareASmallDecodePool) {
  const auto prefill = Prefill("0.01");
  const auto decode = Decode("0.5", {"--max-num-seqs", "4"});
  const auto frontend = Frontend(2);
  std::vector<std::unique_ptr<HttpConnection>> clients;
  for (int i = 0; i < 24; ++i) {
    clients.push_back(std::make_unique<HttpConnection>(frontend->port()));
    ASSERT_TRUE(clients.back()->Send(HttpText("POST", kPath, StreamBody(1 + 100 * i, 100, 20))));
  }
  for (const auto& client : clients) {
    const HttpAnswer answer = client->Read();
    EXPECT_NE(answer.body.find(R"("completion_tokens":20)"), std::string::npos) << answer.body;
  }
  EXPECT_TRUE(Empties(*prefill, backend_));
  EXPECT_TRUE(Empties(*decode, backend_));
}

INSTANTIATE_TEST_SUITE_P(Backends, LiveHandoffBackends, ::testing::Values("vllm", "sglang"),
                         [](const auto& backend) { return backend.param; });

TEST_F(LiveHandoffProcesses, TheFirstTokenComesWhenTheModelSays) {
  const LiveServer prefill(
      Common() + Flags{"--disaggregation-mode", "prefill", "--prefill-ms", "25", "--decode-ms", "5",
                       "--kv-bytes-per-token", "131072", "--kv-transfer-bandwidth", "1"},
      "mocker");
  const LiveServer decode(
      Common() + Flags{"--is-decode-worker", "--prefill-ms", "25", "--decode-ms", "5"}, "mocker");
  const auto frontend = Frontend(2);
  const double model_ms = 25 + 558 * 131072 / 1e9 * 1000 + 5;
  constexpr int kTimes = 5;
  double best_ms = 1e9;
  for (int i = 0; i < kTimes; ++i) {
    HttpConnection stream(frontend->port());
    const std::string request = HttpText("POST", kPath, StreamBody(1 + 1000 * i, 558, 5));
    const auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(stream.Send(request));
    ASSERT_TRUE(stream.ReadUntil(R"("text")"));
    const Milliseconds took = std::chrono::steady_clock::now() - start;
    EXPECT_GE(took.count(), model_ms);
    best_ms = std::min(best_ms, took.count());
    stream.Read();
  }
  EXPECT_LE(best_ms, model_ms + (kSanitized ? 300 : 30));
  // Latencies are those of decode workers, from the arrival of the request on.
  const std::string of_decode = Get(decode.port(), "/metrics").body;
  const std::string of_prefill = Get(prefill.port(), "/metrics").body;
  EXPECT_EQ(Metric(of_decode, "vllm:time_to_first_token_seconds_count"), kTimes);
  EXPECT_GE(Metric(of_decode, "vllm:time_to_first_token_seconds_sum"), kTimes * model_ms / 1000);
  EXPECT_EQ(Metric(of_decode, "vllm:e2e_request_latency_seconds_count"), kTimes);
  for (const std::string name : {"time_to_first_token", "e2e_request_latency", "request_queue_time",
                                 "inter_token_latency"}) {
    EXPECT_EQ(Metric(of_prefill, "vllm:" + name + "_seconds_count"), 0) << name;
  }
  EXPECT_EQ(Metric(of_prefill, "vllm:prompt_tokens_total"), kTimes * 558);
}

TEST_F(LiveHandoffProcesses, WhatTheDecodeWorkerHasIsNotMovedAgain) {
  const auto prefill = Prefill("0.0001", {"--kv-transfer-timing-mode", "destination_missing"});
  const auto decode = Decode();
  const auto frontend = Frontend(2);
  for (int i = 0; i < 2; ++i) {
    const auto start = std::chrono::steady_clock::now();
    ASSERT_EQ(Post(frontend->port(), kPath, StreamBody(1, 40 + 4 * i, 2)).status, 200);
    const Milliseconds took = std::chrono::steady_clock::now() - start;
    // 40 tokens take 400 ms; the second time the last block alone is missing.
    if (i == 0) {
      EXPECT_GE(took.count(), 400);
    } else {
      EXPECT_GE(took.count(), 40);
      EXPECT_LT(took.count(), 300);
    }
  }
}

TEST_F(LiveHandoffProcesses, AKilledPrefillWorkerEndsTheTransfer) {
  const auto prefill = Prefill("0.00001");  // 4 s
  const auto decode = Decode();
  const auto frontend = Frontend(2);
  HttpConnection stream(frontend->port());
  ASSERT_TRUE(stream.Send(HttpText("POST", kPath, StreamBody(1, 40, 5))));
  ASSERT_TRUE(Holds(*decode));
  prefill->Signal(SIGKILL);
  const HttpAnswer answer = stream.Read();
  EXPECT_NE(answer.body.find(R"("code":503)"), std::string::npos) << answer.body;
  EXPECT_TRUE(Empties(*decode));
  EXPECT_TRUE(Becomes(frontend->port(), "dynamo_frontend_inflight_requests", 0));
}

TEST_F(LiveHandoffProcesses, AKilledPrefillWorkerIsReplacedWhenRequestsMayMigrate) {
  const auto first = Prefill("0.00001");
  const auto decode = Decode();
  const auto frontend = Frontend(2, {"--migration-limit", "1"});
  HttpConnection stream(frontend->port());
  ASSERT_TRUE(stream.Send(HttpText("POST", kPath, StreamBody(1, 40, 5))));
  ASSERT_TRUE(Holds(*decode));
  const auto second = Prefill("0");
  ASSERT_TRUE(Soon([&] { return Instances(*frontend) == 3; }));
  first->Signal(SIGKILL);
  const HttpAnswer answer = stream.Read();
  EXPECT_NE(answer.body.find(R"("completion_tokens":5)"), std::string::npos) << answer.body;
  EXPECT_TRUE(Empties(*decode));
  EXPECT_TRUE(Empties(*second));
}

TEST_F(LiveHandoffProcesses, AKilledDecodeWorkerFreesTheSource) {
  const auto prefill = Prefill("0.00001");
  const auto decode = Decode();
  const auto frontend = Frontend(2);
  HttpConnection stream(frontend->port());
  ASSERT_TRUE(stream.Send(HttpText("POST", kPath, StreamBody(1, 40, 5))));
  ASSERT_TRUE(Holds(*decode));
  ASSERT_TRUE(Holds(*prefill));
  decode->Signal(SIGKILL);
  const HttpAnswer answer = stream.Read();
  EXPECT_NE(answer.body.find(R"("code":503)"), std::string::npos) << answer.body;
  EXPECT_TRUE(Empties(*prefill));
  EXPECT_TRUE(Becomes(frontend->port(), "dynamo_frontend_inflight_requests", 0));
}

TEST_F(LiveHandoffProcesses, AKilledDecodeWorkersStreamGoesOnElsewhere) {
  const auto prefill = Prefill("0");
  const auto first = Decode("5");
  const auto frontend = Frontend(2, {"--migration-limit", "1"});
  HttpConnection stream(frontend->port());
  ASSERT_TRUE(stream.Send(HttpText("POST", kPath, StreamBody(1, 40, 200))));
  ASSERT_TRUE(stream.ReadUntil("data: ", 5));
  const auto second = Decode("0.5");
  ASSERT_TRUE(Soon([&] { return Instances(*frontend) == 3; }));
  first->Signal(SIGKILL);
  const HttpAnswer answer = stream.Read();
  EXPECT_NE(answer.body.find(R"("completion_tokens":200)"), std::string::npos) << answer.body;
  EXPECT_TRUE(Empties(*prefill));
  EXPECT_TRUE(Empties(*second));
}

TEST_F(LiveHandoffProcesses, AKilledFrontendFreesBothHalves) {
  const auto prefill = Prefill("0.00001");
  const auto decode = Decode();
  const auto frontend = Frontend(2);
  HttpConnection stream(frontend->port());
  ASSERT_TRUE(stream.Send(HttpText("POST", kPath, StreamBody(1, 40, 5))));
  ASSERT_TRUE(Holds(*decode));
  frontend->Signal(SIGKILL);
  EXPECT_TRUE(Empties(*prefill));
  EXPECT_TRUE(Empties(*decode));
}

TEST_F(LiveHandoffProcesses, WorkersThatDrainFinishWhatTheyHave) {
  for (const bool of_prefill : {true, false}) {
    const auto prefill = Prefill("0.00005");  // 800 ms
    const auto decode = Decode("1");
    const auto frontend = Frontend(2);
    HttpConnection stream(frontend->port());
    ASSERT_TRUE(stream.Send(HttpText("POST", kPath, StreamBody(1, 40, 500))));
    ASSERT_TRUE(Holds(*decode));
    (of_prefill ? prefill : decode)->Signal(SIGTERM);
    const HttpAnswer answer = stream.Read();
    EXPECT_NE(answer.body.find(R"("completion_tokens":500)"), std::string::npos) << answer.body;
    EXPECT_EQ((of_prefill ? prefill : decode)->Wait(), 0);
    EXPECT_TRUE(Empties(of_prefill ? *decode : *prefill));
    EXPECT_EQ(Post(frontend->port(), kPath, StreamBody(1, 4, 1)).status, 503);
  }
}

TEST_F(LiveHandoffProcesses, AHandoffThatTakesTooLongFails) {
  const auto prefill = Prefill("0.00001");
  const auto decode = Decode("0.5", {"--handoff-session-timeout-ms", "1000"});
  const auto frontend = Frontend(2);
  const HttpAnswer answer = Post(frontend->port(), kPath, StreamBody(1, 40, 5));
  EXPECT_NE(answer.body.find("the handoff took longer than its timeout"), std::string::npos)
      << answer.body;
  EXPECT_TRUE(Empties(*prefill));
  EXPECT_TRUE(Empties(*decode));
  // A prefill worker that nobody comes back to.
  const auto alone = Prefill("0", {"--handoff-session-timeout-ms", "1000"});
  const HttpAnswer held = Post(alone->port(), "/v1/worker/0/streams",
                               R"({"model":"mock","output_tokens":4,"token_ids":[1,2,3,4,5]})");
  EXPECT_NE(held.body.find("\nH "), std::string::npos) << held.body;
  EXPECT_NE(held.body.find("\nX "), std::string::npos) << held.body;
  EXPECT_TRUE(Empties(*alone));
}

// A prefill worker that publishes KV events on some free ports.
TEST_F(LiveHandoffProcesses, TwoAndTwoWorkersServeALoadBehindTheKvRouter) {
  std::vector<std::unique_ptr<LiveServer>> prefill;
  int port = 23100 + getpid() % 300 * 2;
  for (; prefill.size() < 2 && port < 24800; port += 2) {
    auto worker = Prefill("0.01", {"--zmq-kv-events-ports", std::to_string(port),
                                   "--zmq-replay-ports", std::to_string(port + 1)});
    if (worker->port() != 0) {
      prefill.push_back(std::move(worker));
    }
  }
  ASSERT_EQ(prefill.size(), 2U);
  const auto first = Decode();
  const auto second = Decode();
  const auto frontend = Frontend(4, {"--router-mode", "kv"});
  constexpr int kConversations = 6;
  const auto stored = [&] {
    return Metric(Get(frontend->port(), "/metrics").body,
                  R"(dynamo_component_kv_cache_events_applied{event_type="stored")");
  };
  // Until events of both workers arrive: what was published before is replayed then.
  int sent = 0;
  ASSERT_TRUE(Soon([&] {
    Post(frontend->port(), kPath, StreamBody(100000 + 1000 * sent, 8, 1));
    ++sent;
    return sent >= 4 && stored() >= sent;
  }));
  for (int turn = 0; turn < 3; ++turn) {
    std::vector<std::unique_ptr<HttpConnection>> clients;
    for (int i = 0; i < kConversations; ++i) {
      clients.push_back(std::make_unique<HttpConnection>(frontend->port()));
      // Each turn repeats the one before and adds 20 tokens.
      ASSERT_TRUE(clients.back()->Send(
          HttpText("POST", kPath, StreamBody(1 + 1000 * i, 40 + 20 * turn, 10))));
    }
    for (const auto& client : clients) {
      const HttpAnswer answer = client->Read();
      EXPECT_NE(answer.body.find(R"("completion_tokens":10)"), std::string::npos) << answer.body;
      const std::string cached =
          R"("cached_tokens":)" + std::to_string(turn == 0 ? 0 : 20 + 20 * turn);
      EXPECT_NE(answer.body.find(cached), std::string::npos) << turn << answer.body;
    }
    const double all = sent + kConversations * (turn + 1);
    ASSERT_TRUE(Soon([&] { return stored() >= all; })) << stored() << " of " << all;
  }
  for (const LiveServer* worker : {prefill[0].get(), prefill[1].get()}) {
    EXPECT_GT(Metric(Get(worker->port(), "/metrics").body, "vllm:prompt_tokens_total"), 0);
    EXPECT_TRUE(Empties(*worker));
  }
  double answers = 0;
  for (const LiveServer* worker : {first.get(), second.get()}) {
    const double of_worker =
        Metric(Get(worker->port(), "/metrics").body, "vllm:e2e_request_latency_seconds_count");
    EXPECT_GT(of_worker, 0);
    answers += of_worker;
    EXPECT_TRUE(Empties(*worker));
  }
  EXPECT_EQ(answers, sent + 3 * kConversations);
}

TEST_F(LiveHandoffProcesses, AModelIsThereWithADecodeWorkerAndServedWithAPrefillWorker) {
  const auto frontend = Frontend(0);
  const auto listed = [&] {
    return Get(frontend->port(), "/v1/models").body.find("\"mock\"") != std::string::npos;
  };
  const auto prefill = Prefill("0");
  ASSERT_TRUE(Soon([&] { return Instances(*frontend) == 1; }));
  EXPECT_FALSE(listed());
  EXPECT_EQ(Get(frontend->port(), "/ready").status, 503);
  const auto decode = Decode();
  ASSERT_TRUE(Soon(listed));
  EXPECT_EQ(Get(frontend->port(), "/ready").status, 200);
  EXPECT_TRUE(Served(*frontend));
  prefill->Signal(SIGTERM);
  EXPECT_EQ(prefill->Wait(), 0);
  ASSERT_TRUE(Soon([&] { return Instances(*frontend) == 1; }));
  EXPECT_TRUE(listed());
  const HttpAnswer answer = Post(frontend->port(), kPath, StreamBody(1, 4, 1));
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.body.find("no prefill worker is there"), std::string::npos) << answer.body;
}

TEST_F(LiveHandoffProcesses, WorkersThatDoNotFitTogetherAreLeftOut) {
  const auto prefill = Prefill("0");
  const auto frontend = Frontend(1);
  const LiveServer whole(Common(), "mocker");
  const LiveServer other_blocks(
      Common() + Flags{"--disaggregation-mode", "decode", "--block-size", "16"}, "mocker");
  const LiveServer other_engine(Common() + Flags{"--disaggregation-mode", "decode", "--engine-type",
                                                 "sglang", "--block-size", "4"},
                                "mocker");
  Sleep(800);
  EXPECT_EQ(Instances(*frontend), 1);
  EXPECT_EQ(Post(frontend->port(), kPath, StreamBody(1, 4, 1)).status, 503);
  const auto decode = Decode();
  ASSERT_TRUE(Soon([&] { return Instances(*frontend) == 2; }));
  EXPECT_TRUE(Served(*frontend));
}

TEST_F(LiveHandoffProcesses, AWorkerTakesOnlyRequestsOfItsRole) {
  const auto decode = Decode();
  const LiveServer whole({}, "mocker");
  const std::string plain = R"({"output_tokens":4,"token_ids":[1,2,3]})";
  const std::string half = R"({"output_tokens":4,"token_ids":[1,2,3],"handoff":{"held":true}})";
  EXPECT_EQ(Post(decode->port(), "/v1/worker/0/streams", plain).status, 400);
  EXPECT_EQ(Post(whole.port(), "/v1/worker/0/streams", half).status, 400);
  EXPECT_EQ(Post(decode->port(), "/v1/worker/0/streams", half).status, 200);
  EXPECT_EQ(Post(decode->port(), "/v1/worker/0/proceed", R"({"stream":"77"})").status, 404);
  EXPECT_EQ(Post(decode->port(), "/v1/worker/0/proceed", "{}").status, 400);
  EXPECT_EQ(Post(decode->port(), "/v1/worker/1/proceed", R"({"stream":"77"})").status, 404);
}

TEST(LiveHandoffFlags, WhatDoesNotFitIsRefusedByName) {
  const auto refused = [](Flags flags, std::string_view why, const std::string& command) {
    LiveServer server(std::move(flags), command);
    EXPECT_EQ(server.Wait(), 2) << why;
    EXPECT_NE(server.output().find(why), std::string::npos) << server.output();
  };
  const auto mocker = [&](const Flags& flags, std::string_view why) {
    refused(flags, why, "mocker");
  };
  mocker({"--disaggregation-mode", "both"}, "--disaggregation-mode");
  mocker({"--is-prefill-worker", "--is-decode-worker"}, "--is-decode-worker");
  mocker({"--is-prefill-worker", "--disaggregation-mode", "prefill"}, "--disaggregation-mode");
  mocker({"--kv-transfer-bandwidth", "1"}, "--kv-transfer-bandwidth");
  mocker({"--disaggregation-mode", "decode", "--kv-bytes-per-token", "1"}, "--kv-bytes-per-token");
  mocker({"--disaggregation-mode", "prefill", "--kv-transfer-timing-mode", "x"},
         "kv_transfer_timing_mode");
  mocker({"--handoff-session-timeout-ms", "5"}, "--handoff-session-timeout-ms");
  mocker({"--disaggregation-mode", "prefill", "--engine-type", "trtllm"}, "trtllm");
  mocker({"--disaggregation-mode", "decode", "--zmq-kv-events-ports", "7001"},
         "--zmq-kv-events-ports");
  mocker({"--disaggregation-mode", "decode", "--extra-engine-args",
          R"({"engine":{"worker_type":"prefill"}})"},
         "worker_type");
  mocker({"--bootstrap-ports", "7001"}, "--bootstrap-ports");
  refused({"--disaggregation-mode", "prefill"}, "--disaggregation-mode", "serve");
  refused({"--extra-engine-args", R"({"engine":{"worker_type":"prefill"}})"}, "worker_type",
          "serve");
}

}  // namespace
}  // namespace dynosim::testing
