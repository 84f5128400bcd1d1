// SPDX-License-Identifier: Apache-2.0
// What goes wrong around a server, by accident or on purpose: ports that are taken, clients that
// stall or leave early, workers that start late or die, faults on request.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cases_for_test.h"
#include "live_server.h"

namespace dynosim::testing {
namespace {

constexpr std::string_view kPath = "/v1/completions";

std::string Body(int max_tokens, bool stream = false) {
  return R"({"model":"mock","prompt":"Hello there","max_tokens":)" + std::to_string(max_tokens) +
         (stream ? R"(,"stream":true})" : "}");
}

double Since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A port of this process that listens.
class TakenPort {
 public:
  explicit TakenPort(std::uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr generic = {};
    __builtin_memcpy(&generic, &address, sizeof address);
    taken_ = bind(socket_, &generic, sizeof address) == 0 && listen(socket_, 1) == 0;
  }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;
  ~TakenPort() { close(socket_); }
  bool taken() const { return taken_; }

 private:
  int socket_;
  bool taken_ = false;
};

TEST(LiveTrouble, OneTakenPortInARangeOfRanksEndsTheServerAtOnceAndLeavesNothing) {
  const auto first = static_cast<std::uint16_t>(24000 + getpid() % 500 * 8);
  const std::string taken = "127.0.0.1:" + std::to_string(first + 2);
  const std::vector<std::string> flags = {"--data-parallel-size", "4", "--zmq-kv-events-ports",
                                          std::to_string(first)};
  {
    const TakenPort middle(static_cast<std::uint16_t>(first + 2));
    ASSERT_TRUE(middle.taken());
    LiveServer server(flags);
    EXPECT_EQ(server.Wait(), 1);
    EXPECT_EQ(server.port(), 0);
    EXPECT_NE(server.output().find(taken), std::string::npos) << server.output();
  }
  // The ports before and after it are free again.
  const LiveServer server(flags);
  EXPECT_NE(server.port(), 0) << server.output();
}

TEST(LiveTrouble, APortCanBeUsedRightAfterItsServerWasKilledWithOpenStreams) {
  LiveServer first({"--prefill-ms", "1", "--decode-ms", "1"});
  const std::string port = std::to_string(first.port());
  HttpConnection stream(first.port());
  ASSERT_TRUE(stream.Send(HttpText("POST", kPath, Body(10000, true))));
  ASSERT_TRUE(stream.ReadUntil("data: ", 3));
  first.Signal(SIGKILL);
  EXPECT_EQ(first.Wait(), 128 + SIGKILL);
  const LiveServer second({"--http-port", port});
  EXPECT_EQ(std::to_string(second.port()), port) << second.output();
}

TEST(LiveTrouble, ClientsThatLeaveDuringPrefillOrInTheQueueLeaveNothing) {
  const LiveServer server({"--prefill-ms", "150", "--decode-ms", "1", "--max-num-seqs", "1"});
  ASSERT_EQ(Post(server.port(), kPath, Body(1)).status, 200);
  for (const bool streaming : {true, false}) {
    HttpConnection computing(server.port());
    HttpConnection queued(server.port());
    ASSERT_TRUE(computing.Send(HttpText("POST", kPath, Body(10000, streaming))));
    ASSERT_TRUE(queued.Send(HttpText("POST", kPath, Body(10000, streaming))));
    ASSERT_TRUE(Becomes(server.port(), "dynamo_frontend_inflight_requests", 2));
    queued.Close();
    computing.Close();
    for (const std::string_view series :
         {"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc",
          "dynamo_frontend_inflight_requests", "dynamo_frontend_queued_requests"}) {
      EXPECT_TRUE(Becomes(server.port(), series, 0)) << series;
    }
  }
  EXPECT_EQ(Metric(Get(server.port(), "/metrics").body, "dynamo_frontend_disconnected_clients"), 4);
}

TEST(LiveTrouble, AReaderThatStallsDelaysNoOtherStream) {
  const LiveServer server({"--prefill-ms", "1", "--decode-ms", "1"});
  HttpConnection stalled(server.port());
  const std::string many =
      R"({"model":"mock","prompt":"a","stream":true,"n":64,"max_tokens":4000})";
  ASSERT_TRUE(stalled.Send(HttpText("POST", kPath, many)));
  ASSERT_TRUE(stalled.ReadUntil("data: "));
  // Some 64,000 events a second are for somebody who does not read.
  const auto start = std::chrono::steady_clock::now();
  int streams = 0;
  while (Since(start) < 2.0) {
    EXPECT_EQ(Events(Post(server.port(), kPath, Body(50, true)).body).back(), "[DONE]");
    ++streams;
  }
  EXPECT_GE(streams, kSanitized ? 1 : 3);
  stalled.Close();
  EXPECT_TRUE(Becomes(server.port(), "vllm:num_requests_running", 0));
}

TEST(LiveTrouble, RequestsWaitForWorkersThatStartLate) {
  const auto start = std::chrono::steady_clock::now();
  const LiveServer server({"--startup-time", "1", "--prefill-ms", "1", "--decode-ms", "1"});
  EXPECT_EQ(Get(server.port(), "/ready").status, 503);
  EXPECT_EQ(Get(server.port(), "/live").status, 200);
  EXPECT_NE(Get(server.port(), "/v1/models").body.find("mock"), std::string::npos);
  EXPECT_EQ(Post(server.port(), kPath, Body(3)).status, 200);
  EXPECT_GE(Since(start), 1.0);
  EXPECT_EQ(Get(server.port(), "/ready").status, 200);
}

TEST(LiveTrouble, FaultsComeAtTheirRateAndOfTheirKinds) {
  const auto statuses = [](const std::vector<std::string>& flags, int count) {
    std::vector<std::string> all = {"--prefill-ms", "0", "--decode-ms", "0"};
    all.insert(all.end(), flags.begin(), flags.end());
    const LiveServer server(all);
    std::map<int, int> out;
    HttpConnection connection(server.port());
    for (int i = 0; i < count; ++i) {
      connection.Send(HttpText("POST", kPath, Body(1)));
      ++out[connection.Read().status];
    }
    return out;
  };
  const auto some = statuses(
      {"--failure-injection-rate", "30", "--failure-types", "rate_limit,model_not_found"}, 400);
  EXPECT_EQ(some.size(), 3U);
  EXPECT_NEAR(some.at(200), 280, 40);
  EXPECT_NEAR(some.at(429), 60, 30);
  EXPECT_NEAR(some.at(404), 60, 30);
  const auto all = statuses({"--failure-injection-rate", "100"}, 200);
  EXPECT_FALSE(all.contains(200));
  for (const int status : {429, 401, 400, 404}) {
    EXPECT_TRUE(all.contains(status)) << status;
  }
  // The same seed fails the same requests.
  EXPECT_EQ(some, statuses({"--failure-injection-rate", "30", "--failure-types",
                            "rate_limit,model_not_found"},
                           400));
}

TEST(LiveTrouble, TheSecondSignalEndsTheServerAndTheDrainHasALimit) {
  for (const bool twice : {true, false}) {
    LiveServer server(
        {"--prefill-ms", "1", "--decode-ms", "5", "--drain-timeout-ms", twice ? "60000" : "300"});
    HttpConnection stream(server.port());
    ASSERT_TRUE(stream.Send(HttpText("POST", kPath, Body(100000, true))));
    ASSERT_TRUE(stream.ReadUntil("data: "));
    const auto start = std::chrono::steady_clock::now();
    server.Signal(SIGTERM);
    if (twice) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      server.Signal(SIGTERM);
    }
    EXPECT_EQ(server.Wait(), 0);
    EXPECT_LT(Since(start), 5.0);
  }
}

TEST(LiveTrouble, FlagsThatMeanNothingHereAreRefusedByNameWithWhatToUse) {
  const auto refused = [](std::vector<std::string> flags, std::string_view why) {
    LiveServer server(flags, "mocker");
    EXPECT_EQ(server.Wait(), 2) << why;
    EXPECT_NE(server.output().find(flags[0] + ": "), std::string::npos) << server.output();
    EXPECT_NE(server.output().find(why), std::string::npos) << server.output();
  };
  refused({"--bootstrap-ports", "7001"}, "frontend brings");
  refused({"--num-host-blocks", "10"}, "not simulated");
  refused({"--request-plane", "nats"}, "HTTP/1.1");
  refused({"--reasoning", "{}"}, "dynosim frontend");
  refused({"--ais-perf-model"}, "--model-path");
  refused({"--model-path", "x"}, "--ais-perf-model");
  const LiveServer works({"--engine-type", "sglang", "--sglang-page-size", "4", "--ais-nextn", "2",
                          "--aic-mtp-seed", "7"},
                         "mocker");
  EXPECT_NE(works.port(), 0) << works.output();
}

TEST(LiveTrouble, AWorkerThatIsKilledBeforeTheFirstTokenIs503) {
  LiveServer victim({"--prefill-ms", "5000", "--decode-ms", "1"}, "mocker");
  const LiveServer frontend({"--worker", "http://127.0.0.1:" + std::to_string(victim.port())},
                            "frontend");
  for (int i = 0;
       i < 400 && Get(frontend.port(), "/v1/models").body.find("mock") == std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  HttpConnection waiting(frontend.port());
  ASSERT_TRUE(waiting.Send(HttpText("POST", kPath, Body(5))));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto start = std::chrono::steady_clock::now();
  victim.Signal(SIGKILL);
  EXPECT_EQ(waiting.Read().status, 503);
  EXPECT_LT(Since(start), 1.0);
}

}  // namespace
}  // namespace dynosim::testing
