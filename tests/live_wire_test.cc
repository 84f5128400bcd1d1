// SPDX-License-Identifier: Apache-2.0
// The server under bytes that are no good HTTP: random ones, and requests that two programs could
// read as different ones (RFC 9112, section 11.2).
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "live_server.h"

namespace dynosim::testing {
namespace {

constexpr std::string_view kChat = "/v1/chat/completions";
constexpr std::string_view kBody =
    R"({"model":"mock","messages":[{"role":"user","content":"na\u00efve 雪 🙂"}],"max_tokens":2})";
// What must not be answered: it hides in the body, or behind the end, of what stands before it.
constexpr std::string_view kHidden = "GET /live HTTP/1.1\r\nhost: x\r\n\r\n";

std::string Start(std::string_view headers) {
  return "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n" + std::string(headers);
}

class LiveWire : public ::testing::Test {
 protected:
  LiveServer server_{{"--speedup-ratio", "0", "--http-body-limit-mb", "1"}};
};

TEST_F(LiveWire, RequestsThatCouldBeReadInTwoWaysAreRefusedAndEndTheConnection) {
  const std::vector<std::string> cases = {
      Start("content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
      Start("transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n"),
      Start("content-length: 5\r\ncontent-length: 6\r\n\r\nhello"),
      Start("content-length: 5\r\ncontent-length: 5\r\n\r\nhello"),
      Start("content-length: 5, 5\r\n\r\nhello"),
      Start("content-length: -1\r\n\r\n"),
      Start("content-length: +5\r\n\r\nhello"),
      Start("content-length: 0x5\r\n\r\nhello"),
      Start("content-length: 5 5\r\n\r\nhello"),
      Start("content-length: 99999999999999999999999\r\n\r\nhello"),
      Start("content-length:\r\n\r\n"),
      Start("content-length : 5\r\n\r\nhello"),
      Start("transfer-encoding : chunked\r\n\r\n0\r\n\r\n"),
      Start("transfer-encoding: xchunked\r\n\r\n"),
      Start("transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
      Start("transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
      Start("transfer-encoding: identity\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
      Start("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
      Start("transfer-encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
      Start("x: a\r\n b\r\ncontent-length: 0\r\n\r\n"),
      Start("x: a\r\n\tcontent-length: 5\r\n\r\n"),
      Start("x: a\ncontent-length: 5\r\n\r\nhello"),
      Start("x: a\rcontent-length: 5\r\n\r\nhello"),
      Start(std::string_view("x: a\0b\r\n\r\n", 10)),
      Start("no colon\r\n\r\n"),
      Start(": no name\r\n\r\n"),
      Start("host: y\r\ncontent-length: 0\r\n\r\n"),
      "POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 0\r\n\r\n",
      "POST /v1/chat/completions HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
      "GET /live HTTP/1.1\nhost: x\n\n\r\n\r\n",
      "GET  /live HTTP/1.1\r\nhost: x\r\n\r\n",
      "GET /live HTTP/2.0\r\nhost: x\r\n\r\n",
      "GET /live\r\n\r\n",
      "G\x01T /live HTTP/1.1\r\nhost: x\r\n\r\n",
      Start("transfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n"),
      Start("transfer-encoding: chunked\r\n\r\n-1\r\nhello\r\n0\r\n\r\n"),
      Start("transfer-encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n"),
      Start("transfer-encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n"),
      Start("transfer-encoding: chunked\r\n\r\n5\r\nhelloworld\r\n0\r\n\r\n"),
      Start("transfer-encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n"),
      Start("transfer-encoding: chunked\r\n\r\n5;" + std::string(100000, 'a')),
  };
  for (const std::string& request : cases) {
    SCOPED_TRACE(request.substr(0, 200));
    HttpConnection connection(server_.port());
    ASSERT_TRUE(connection.Send(request + std::string(kHidden)));
    const HttpAnswer answer = connection.Read();
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_NE(answer.head.find("connection: close\r\n"), std::string::npos) << answer.head;
    EXPECT_TRUE(connection.AtEnd());
  }
  EXPECT_EQ(Get(server_.port(), "/live").status, 200);
}

TEST_F(LiveWire, NothingIsReadBehindTheLastRequestOfAConnection) {
  for (const std::string_view last : {"GET /live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
                                      "GET /live HTTP/1.0\r\n\r\n"}) {
    HttpConnection connection(server_.port());
    ASSERT_TRUE(connection.Send(std::string(last) + HttpText("POST", kChat, kBody)));
    EXPECT_EQ(connection.Read().status, 200);
    EXPECT_TRUE(connection.AtEnd());
  }
  EXPECT_EQ(Metric(Get(server_.port(), "/metrics").body, "dynamo_frontend_requests_total"), -1);
}

TEST_F(LiveWire, ChunkedBodiesAreReadHoweverTheyAreCut) {
  std::string chunks;
  for (const char c : kBody) {
    chunks += "1;ext=\"a b\"\r\n";
    chunks += c;
    chunks += "\r\n";
  }
  const std::string request =
      Start("Transfer-Encoding: Chunked\r\n\r\n") + chunks + "0\r\ntrailer: t\r\n\r\n";
  HttpConnection connection(server_.port());
  for (std::size_t at = 0; at < request.size(); at += 7) {
    ASSERT_TRUE(connection.Send(std::string_view(request).substr(at, 7)));
  }
  const HttpAnswer answer = connection.Read();
  EXPECT_EQ(answer.status, 200) << answer.body;
  ASSERT_TRUE(connection.Send(HttpText("GET", "/live", "")));
  EXPECT_EQ(connection.Read().status, 200);
  // The limit holds for bodies that do not say how long they are, too.
  HttpConnection large(server_.port());
  std::string block = "10000\r\n" + std::string(0x10000, 'x') + "\r\n";
  ASSERT_TRUE(large.Send(Start("transfer-encoding: chunked\r\n\r\n")));
  for (int i = 0; i < 17; ++i) {
    (void)large.Send(block);
  }
  EXPECT_EQ(large.Read().status, 413);
}

TEST_F(LiveWire, TextThatIsNoUtf8IsRefusedAndUtf8IsEchoedAsItCame) {
  const auto chat = [&](std::string_view text) {
    return Post(server_.port(), kChat,
                R"({"model":"mock","max_tokens":1,"messages":[{"role":"user","content":")" +
                    std::string(text) + "\"}]}");
  };
  for (const std::string_view bad :
       {"\xff", "\xe9\x9b", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80"}) {
    EXPECT_EQ(chat(bad).status, 400);
  }
  EXPECT_EQ(chat("\xe9\x9b\xaa").status, 200);
}

TEST_F(LiveWire, ManyAndLongHeadersHaveALimit) {
  std::string many = "GET /live HTTP/1.1\r\nhost: x\r\n";
  for (int i = 0; i < 10000; ++i) {
    many += "x-" + std::to_string(i) + ": y\r\n";
  }
  for (const std::string& request :
       {many + "\r\n", "GET /" + std::string(100000, 'a') + " HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET /live HTTP/1.1\r\nhost: x\r\nx: " + std::string(100000, 'a') + "\r\n\r\n",
        "GET /live HTTP/1.1\r\nhost: x\r\n" + std::string(100000, 'a')}) {
    HttpConnection connection(server_.port());
    ASSERT_TRUE(connection.Send(request));
    EXPECT_EQ(connection.Read().status, 431);
    EXPECT_TRUE(connection.AtEnd());
  }
}

TEST(LiveWireTimes, SlowRequestsAndIdleConnectionsEnd) {
  const LiveServer server({"--http-header-timeout-ms", "300", "--http-body-timeout-ms", "400",
                           "--http-idle-timeout-ms", "500", "--prefill-ms", "1500", "--decode-ms",
                           "1"});
  HttpConnection silent(server.port());
  HttpConnection header(server.port());
  HttpConnection body(server.port());
  HttpConnection idle(server.port());
  HttpConnection waits(server.port());
  ASSERT_TRUE(header.Send("GET /live HT"));
  ASSERT_TRUE(body.Send(Start("content-length: 5\r\n\r\nhel")));
  ASSERT_TRUE(idle.Send(HttpText("GET", "/live", "")));
  ASSERT_TRUE(waits.Send(HttpText("POST", kChat, kBody)));
  EXPECT_EQ(idle.Read().status, 200);
  // A header in drops has no more time than one that stops.
  for (int i = 0; i < 20; ++i) {
    if (!header.Send(i == 10 ? "T" : "")) {
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(header.Read().status, 408);
  EXPECT_EQ(body.Read().status, 408);
  EXPECT_TRUE(header.AtEnd());
  EXPECT_TRUE(body.AtEnd());
  EXPECT_TRUE(silent.AtEnd());
  EXPECT_TRUE(idle.AtEnd());
  // An answer takes as long as it takes.
  EXPECT_EQ(waits.Read().status, 200);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Below(std::uint64_t bound) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return (state_ >> 33U) % bound;
  }
  char Byte() { return static_cast<char>(Below(256)); }

 private:
  std::uint64_t state_;
};

// A request out of parts that matter to a parser, then some damage.
std::string RandomRequest(Random& random) {
  static constexpr std::array<std::string_view, 12> kTargets = {"/v1/chat/completions",
                                                                "/v1/completions",
                                                                "/v1/responses",
                                                                "/generate",
                                                                "/tokenize",
                                                                "/detokenize",
                                                                "/metrics",
                                                                "/v1/models",
                                                                "/busy_threshold",
                                                                "/v1/models/%00",
                                                                "*",
                                                                "http://x/live"};
  static constexpr std::array<std::string_view, 15> kHeaders = {
      "content-length: 0",
      "content-length: 40",
      "content-length: 18446744073709551615",
      "transfer-encoding: chunked",
      "connection: close",
      "connection: keep-alive",
      "expect: 100-continue",
      "upgrade: h2c",
      "x-request-id: \xff\xfe",
      "x-data-parallel-rank: -1",
      "x-return-error: 999",
      "host: x",
      "content-type: text/plain",
      "accept:",
      "x: \t y"};
  static constexpr std::array<std::string_view, 12> kBodies = {
      kBody,
      "5\r\nhello\r\n0\r\n\r\n",
      "ffffffffffffffff\r\n",
      "{\"model\":\"mock\",\"prompt\":[1,2,3],\"n\":128,\"max_tokens\":3,\"stream\":true}",
      "{\"model\":\"mock\",\"prompt\":[-1,1e400,null]}",
      "{\"model\":\"mock\",\"prompt\":\"a\",\"max_tokens\":99999999999999999999}",
      "{\"model\":\"mock\",\"input\":\"\\ud800\",\"max_output_tokens\":2,\"stream\":true}",
      "{\"tokens\":[4294967295,-5,1000]}",
      "[[[[[[[[[[[[[[[[[[[[[[[[",
      "{\"model\":\"mock\",\"messages\":[{\"role\":7,\"content\":[{\"type\":\"text\"}]}]}",
      "{\"model\":\"mock\",\"active_decode_blocks_threshold\":\"x\"}",
      "\xe9\x9b"};
  const std::string_view body = kBodies[random.Below(kBodies.size())];
  std::string out = random.Below(3) == 0 ? "GET " : "POST ";
  out += kTargets[random.Below(kTargets.size())];
  out += random.Below(10) == 0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n";
  out += "host: a\r\n";
  if (random.Below(2) == 0) {
    out += "content-length: " + std::to_string(body.size()) + "\r\n";
  }
  for (std::uint64_t n = random.Below(4); n > 0; --n) {
    out += kHeaders[random.Below(kHeaders.size())];
    out += "\r\n";
  }
  out += "\r\n";
  out += body;
  for (std::uint64_t edits = random.Below(4); edits > 0; --edits) {
    const std::size_t at = random.Below(out.size());
    switch (random.Below(4)) {
      case 0:
        out[at] = random.Byte();
        break;
      case 1:
        out.erase(at, random.Below(20));
        break;
      case 2:
        out.insert(at, random.Below(20), random.Byte());
        break;
      default:
        out += out.substr(at, random.Below(60));
    }
    if (out.empty()) {
      out = "x";
    }
  }
  return out;
}

TEST_F(LiveWire, ThousandsOfRandomRequestsLeaveTheServerAsItWas) {
  Random random(20);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  int sent = 0;
  for (; sent < 4000 && std::chrono::steady_clock::now() < end; ++sent) {
    HttpConnection connection(server_.port());
    std::string bytes = RandomRequest(random);
    if (random.Below(4) == 0) {
      bytes += RandomRequest(random);  // pipelined
    }
    if (random.Below(16) == 0) {
      for (char& c : bytes) {
        c = random.Byte();
      }
    }
    const std::size_t cut = random.Below(2) == 0 ? bytes.size() : random.Below(bytes.size());
    connection.Send(std::string_view(bytes).substr(0, cut));
    connection.Send(std::string_view(bytes).substr(cut));
    if (random.Below(4) == 0) {
      connection.EndSending();
      (void)connection.ReadUntil("nothing answers with this");
    }
  }
  EXPECT_GT(sent, 300);
  EXPECT_EQ(Post(server_.port(), kChat, kBody).status, 200);
  double inflight = -1.0;
  for (int i = 0; i < 400 && inflight != 0.0; ++i) {
    inflight = Metric(Get(server_.port(), "/metrics").body, "dynamo_frontend_inflight_requests");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(inflight, 0.0);
}

}  // namespace
}  // namespace dynosim::testing
