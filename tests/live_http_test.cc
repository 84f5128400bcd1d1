// SPDX-License-Identifier: Apache-2.0
// The server as its clients see it: answers, streams, errors, and what is left after them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "live_server.h"

namespace dynosim::testing {
namespace {

const std::vector<std::string> kFast = {"--prefill-ms", "2", "--decode-ms", "0.5"};

Json Parsed(const std::string& text) {
  auto json = ParseJson(text, "answer");
  EXPECT_TRUE(json) << text;
  return json ? *json : Json();
}

// Follows names and, for arrays, the first element.
const Json& At(const Json& json, std::initializer_list<std::string_view> path) {
  static const Json null;
  const Json* at = &json;
  for (const std::string_view name : path) {
    if (at->is_array()) {
      if (at->array().empty()) {
        return null;
      }
      at = &at->array().front();
    }
    at = at->is_object() ? at->Find(name) : nullptr;
    if (at == nullptr) {
      return null;
    }
  }
  return *at;
}

constexpr std::string_view kChat = "/v1/chat/completions";

std::string ChatBody(int max_tokens, bool stream, std::string_view more = "") {
  return R"({"model":"mock","messages":[{"role":"user","content":"Hello there"}],"max_tokens":)" +
         std::to_string(max_tokens) + (stream ? R"(,"stream":true)" : "") + std::string(more) + "}";
}

class LiveHttp : public ::testing::Test {
 protected:
  LiveServer server_{kFast};
};

TEST_F(LiveHttp, StreamsOneChunkPerTokenThenTheReasonThenUsageOnlyWhenAskedFor) {
  const HttpAnswer with =
      Post(server_.port(), kChat, ChatBody(5, true, R"(,"stream_options":{"include_usage":true})"),
           "x-request-id: r-17\r\n");
  ASSERT_EQ(with.status, 200);
  EXPECT_NE(with.head.find("content-type: text/event-stream\r\n"), std::string::npos);
  EXPECT_NE(with.head.find("x-request-id: r-17\r\n"), std::string::npos);
  const std::vector<std::string> events = Events(with.body);
  ASSERT_EQ(events.size(), 8U) << with.body;  // 5 tokens, reason, usage, done
  for (int i = 0; i < 5; ++i) {
    const Json chunk = Parsed(events[i]);
    EXPECT_EQ(At(chunk, {"object"}), Json("chat.completion.chunk"));
    EXPECT_FALSE(At(chunk, {"choices", "delta", "content"}).string().empty());
    EXPECT_EQ(At(chunk, {"choices", "delta", "role"}), i == 0 ? Json("assistant") : Json());
    EXPECT_EQ(chunk.Find("usage"), nullptr);
  }
  EXPECT_EQ(At(Parsed(events[5]), {"choices", "finish_reason"}), Json("length"));
  const Json usage = Parsed(events[6]);
  EXPECT_TRUE(At(usage, {"choices"}).array().empty());
  EXPECT_EQ(At(usage, {"usage", "completion_tokens"}).number(), 5);
  EXPECT_EQ(At(usage, {"usage", "total_tokens"}).number(),
            5 + At(usage, {"usage", "prompt_tokens"}).number());
  EXPECT_EQ(events[7], "[DONE]");

  const HttpAnswer without = Post(server_.port(), kChat, ChatBody(5, true));
  EXPECT_EQ(Events(without.body).size(), 7U);
  EXPECT_EQ(without.body.find("usage"), std::string::npos);
  const Json whole = Parsed(Post(server_.port(), kChat, ChatBody(5, false)).body);
  EXPECT_EQ(At(whole, {"usage", "completion_tokens"}).number(), 5);
  EXPECT_EQ(At(whole, {"usage", "prompt_tokens"}), At(usage, {"usage", "prompt_tokens"}));
}

TEST_F(LiveHttp, OneTokenIsOneContentChunk) {
  const std::vector<std::string> events =
      Events(Post(server_.port(), kChat, ChatBody(1, true)).body);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_FALSE(At(Parsed(events[0]), {"choices", "delta", "content"}).string().empty());
  EXPECT_EQ(At(Parsed(events[1]), {"choices", "finish_reason"}), Json("length"));
}

TEST_F(LiveHttp, CompletionsGiveOneChoicePerPromptAndSumTheUsage) {
  const Json whole = Parsed(
      Post(server_.port(), "/v1/completions",
           R"({"model":"mock","prompt":[" the of"," the",[1000,1001,1002]],"max_tokens":4,"n":2})")
          .body);
  const Json::Array& choices = At(whole, {"choices"}).array();
  ASSERT_EQ(choices.size(), 6U);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    EXPECT_EQ(choices[i].Find("index")->number(), static_cast<double>(i));
    EXPECT_EQ(*choices[i].Find("finish_reason"), Json("length"));
    EXPECT_FALSE(choices[i].Find("text")->string().empty());
  }
  EXPECT_EQ(At(whole, {"usage", "prompt_tokens"}).number(), 6);
  EXPECT_EQ(At(whole, {"usage", "completion_tokens"}).number(), 24);
}

TEST_F(LiveHttp, AStopStringEndsTheAnswerBeforeItAlsoAcrossTokens) {
  const std::string seeded = R"(,"seed":7)";
  const Json full = Parsed(Post(server_.port(), kChat, ChatBody(12, false, seeded)).body);
  const std::string text = At(full, {"choices", "message", "content"}).string();
  // From the middle of one word into the next.
  const std::size_t space = text.find(' ', text.size() / 2);
  ASSERT_NE(space, std::string::npos);
  const std::string stop = text.substr(space - 2, 5);
  const std::string more = seeded + R"(,"stop":[")" + stop + R"("])";
  const Json cut = Parsed(Post(server_.port(), kChat, ChatBody(12, false, more)).body);
  EXPECT_EQ(At(cut, {"choices", "finish_reason"}), Json("stop"));
  EXPECT_EQ(At(cut, {"choices", "message", "content"}).string(), text.substr(0, text.find(stop)));
  EXPECT_LT(At(cut, {"usage", "completion_tokens"}).number(), 12);
  std::string streamed;
  for (const std::string& event :
       Events(Post(server_.port(), kChat, ChatBody(12, true, more)).body)) {
    if (event != "[DONE]") {
      const Json parsed = Parsed(event);
      const Json& content = At(parsed, {"choices", "delta", "content"});
      streamed += content.is_string() ? content.string() : "";
    }
  }
  EXPECT_EQ(streamed, text.substr(0, text.find(stop)));
  EXPECT_TRUE(Becomes(server_.port(), "vllm:num_requests_running", 0));
}

TEST_F(LiveHttp, ErrorsSayWhatIsWrongInTheOpenAiFormAndKeepTheConnection) {
  HttpConnection connection(server_.port());
  struct Case {
    std::string request;
    int status;
    std::string type;
    std::string text;
  };
  const std::vector<Case> cases = {
      {HttpText("POST", kChat, "{bad"), 400, "BadRequestError", "not valid JSON"},
      {HttpText("POST", kChat, R"({"model":"gone","messages":[{"role":"user","content":"x"}]})"),
       404, "NotFoundError", "`gone` does not exist"},
      {HttpText("POST", kChat, R"({"model":"mock","messages":[]})"), 400, "BadRequestError",
       "cannot be empty"},
      {HttpText("POST", kChat, ChatBody(0, false)), 400, "BadRequestError", "max_tokens"},
      {HttpText("POST", kChat, ChatBody(1, false, R"(,"temperature":5)")), 400, "BadRequestError",
       "temperature must be a number from 0 to 2"},
      {HttpText("POST", "/v1/completions", R"({"model":"mock","prompt":""})"), 400,
       "BadRequestError", "must not be empty"},
      {HttpText("GET", "/v1/foo", ""), 404, "NotFoundError", "Route not found: GET /v1/foo"},
      {HttpText("GET", kChat, ""), 405, "MethodNotAllowedError", "Method Not Allowed"},
      {HttpText("POST", kChat, ChatBody(1, false), "x-return-error: 429\r\n"), 429,
       "RateLimitError", "X-Return-Error"},
      {HttpText("POST", kChat, ChatBody(1, false, R"(,"nvext":{"dp_rank":7})")), 400,
       "BadRequestError", "dp_rank 7 is out of bounds for dp_size 1"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.request);
    ASSERT_TRUE(connection.Send(c.request));
    const HttpAnswer answer = connection.Read();
    ASSERT_EQ(answer.status, c.status) << answer.body;
    const Json body = Parsed(answer.body);
    EXPECT_EQ(At(body, {"error", "type"}), Json(c.type));
    EXPECT_EQ(At(body, {"error", "code"}).number(), c.status);
    EXPECT_NE(At(body, {"error", "message"}).string().find(c.text), std::string::npos)
        << answer.body;
    EXPECT_EQ(At(body, {"message"}), At(body, {"error", "message"}));
  }
  ASSERT_TRUE(connection.Send(HttpText("POST", kChat, ChatBody(1, false))));
  EXPECT_EQ(connection.Read().status, 200);
}

TEST_F(LiveHttp, ACanceledClientFreesItsRequestAndIsCounted) {
  // The name of the model is known from the first request on.
  ASSERT_EQ(Post(server_.port(), kChat, ChatBody(1, false)).status, 200);
  for (const bool streaming : {true, false}) {
    HttpConnection connection(server_.port());
    ASSERT_TRUE(connection.Send(HttpText("POST", kChat, ChatBody(10000, streaming))));
    ASSERT_TRUE(Becomes(server_.port(), "vllm:num_requests_running", 1));
    connection.Close();
    EXPECT_TRUE(Becomes(server_.port(), "vllm:num_requests_running", 0));
    EXPECT_TRUE(Becomes(server_.port(), "vllm:kv_cache_usage_perc", 0));
    EXPECT_TRUE(Becomes(server_.port(), "dynamo_frontend_disconnected_clients", streaming ? 1 : 2));
  }
  const std::string page = Get(server_.port(), "/metrics").body;
  EXPECT_EQ(Metric(page, "dynamo_frontend_inflight_requests"), 0);
  EXPECT_EQ(Metric(page, "dynamo_frontend_queued_requests"), 0);
}

TEST_F(LiveHttp, CountersAndHistogramsAreExactAndLabelsAreBounded) {
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(Post(server_.port(), kChat, ChatBody(5, true)).status, 200);
  }
  HttpConnection connection(server_.port());
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(connection.Send(HttpText(
        "POST", kChat,
        R"({"messages":[{"role":"user","content":"x"}],"model":"m)" + std::to_string(i) + "\"}")));
    ASSERT_EQ(connection.Read().status, 404);
  }
  const std::string page = Get(server_.port(), "/metrics").body;
  EXPECT_LT(page.size(), 100000U);
  EXPECT_EQ(Metric(page, "dynamo_frontend_requests_total{model=\"unknown_model\""), 1000);
  EXPECT_EQ(Metric(page, "vllm:time_to_first_token_seconds_count"), 10);
  EXPECT_EQ(Metric(page, "vllm:inter_token_latency_seconds_count"), 40);
  EXPECT_EQ(Metric(page, "vllm:e2e_request_latency_seconds_count"), 10);
  EXPECT_EQ(Metric(page, "vllm:generation_tokens_total"), 50);
  EXPECT_EQ(Metric(page, "dynamo_frontend_output_tokens_total"), 50);
  EXPECT_EQ(Metric(page, "dynamo_frontend_time_to_first_token_seconds_count"), 10);
  EXPECT_EQ(Metric(page, "dynamo_frontend_inter_token_latency_seconds_count"), 40);
  // Buckets rise, and the last one is the count.
  double last = 0.0;
  std::string_view rest = page;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.starts_with("vllm:inter_token_latency_seconds_bucket")) {
      const double value = std::atof(std::string(line.substr(line.rfind(' '))).c_str());
      EXPECT_GE(value, last);
      last = value;
    }
  }
  EXPECT_EQ(last, 40);
}

TEST_F(LiveHttp, PipelinedRequestsAreAnsweredInOrderAndAmbiguousFramingIsRefused) {
  HttpConnection connection(server_.port());
  ASSERT_TRUE(connection.Send(HttpText("POST", kChat, ChatBody(3, true)) +
                              HttpText("GET", "/live", "") + HttpText("GET", "/v1/foo", "")));
  EXPECT_NE(connection.Read().body.find("[DONE]"), std::string::npos);
  EXPECT_NE(connection.Read().body.find("live"), std::string::npos);
  EXPECT_EQ(connection.Read().status, 404);
  for (const std::string_view framing :
       {"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /live "
        "HTTP/1.1\r\n\r\n",
        "content-length: 5\r\ncontent-length: 6\r\n\r\nhelloGET /live HTTP/1.1\r\n\r\n",
        "content-length: -1\r\n\r\nGET /live HTTP/1.1\r\n\r\n",
        "transfer-encoding: xchunked\r\n\r\nGET /live HTTP/1.1\r\n\r\n"}) {
    SCOPED_TRACE(framing);
    HttpConnection bad(server_.port());
    ASSERT_TRUE(
        bad.Send("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n" + std::string(framing)));
    EXPECT_EQ(bad.Read().status, 400);
    EXPECT_TRUE(bad.AtEnd());
  }
  EXPECT_EQ(Get(server_.port(), "/live").status, 200);
}

TEST_F(LiveHttp, HeadWorksLikeGetWithoutABody) {
  HttpConnection connection(server_.port());
  ASSERT_TRUE(connection.Send(HttpText("HEAD", "/metrics", "") + HttpText("GET", "/live", "")));
  EXPECT_EQ(connection.Read(true).status, 200);
  EXPECT_NE(connection.Read().body.find("live"), std::string::npos);
}

TEST_F(LiveHttp, AdaptersAreListedServedAndUnloaded) {
  ASSERT_EQ(
      Post(server_.port(), "/v1/load_lora_adapter", R"({"lora_name":"tuned","lora_path":"p"})")
          .status,
      200);
  EXPECT_EQ(
      Post(server_.port(), "/v1/load_lora_adapter", R"({"lora_name":"tuned","lora_path":"p"})")
          .status,
      400);
  const Json list = Parsed(Get(server_.port(), "/v1/models").body);
  EXPECT_EQ(At(list, {"data"}).array().size(), 2U);
  const Json answer =
      Parsed(Post(server_.port(), kChat,
                  R"({"model":"tuned","messages":[{"role":"user","content":"x"}],"max_tokens":2})")
                 .body);
  EXPECT_EQ(At(answer, {"model"}), Json("tuned"));
  EXPECT_EQ(Post(server_.port(), "/v1/unload_lora_adapter", R"({"lora_name":"tuned"})").status,
            200);
  EXPECT_EQ(Get(server_.port(), "/v1/models/tuned").status, 404);
}

TEST_F(LiveHttp, TokensRoundTripAndTheResponsesApiAnswers) {
  const Json tokens = Parsed(
      Post(server_.port(), "/tokenize", R"({"prompt":"na\u00efve \u96ea \ud83d\ude42 the end"})")
          .body);
  const std::string ids = DumpJson(At(tokens, {"tokens"}));
  const Json text = Parsed(Post(server_.port(), "/detokenize", "{\"tokens\":" + ids + "}").body);
  EXPECT_EQ(At(text, {"prompt"}), Json("na\u00efve \u96ea \U0001f642 the end"));

  const Json response = Parsed(Post(server_.port(), "/v1/responses",
                                    R"({"model":"mock","input":"Hello","max_output_tokens":3})")
                                   .body);
  EXPECT_EQ(At(response, {"status"}), Json("incomplete"));
  EXPECT_EQ(At(response, {"usage", "output_tokens"}).number(), 3);
  EXPECT_FALSE(At(response, {"output", "content", "text"}).string().empty());
}

TEST(LiveServing, BodiesOverTheLimitAndLongHeadersAreRefused) {
  const LiveServer server({"--http-body-limit-mb", "1"});
  EXPECT_EQ(Post(server.port(), kChat, std::string(2U << 20, 'x')).status, 413);
  HttpConnection connection(server.port());
  connection.Send("GET /live HTTP/1.1\r\nx: " + std::string(100000, 'a') + "\r\n\r\n");
  EXPECT_EQ(connection.Read().status, 431);
  EXPECT_EQ(Get(server.port(), "/live").status, 200);
}

TEST(LiveServing, APromptOverTheContextLimitNamesTheNumbers) {
  const LiveServer server({"--max-model-len", "20"});
  const HttpAnswer answer = Post(
      server.port(), "/v1/completions",
      R"({"model":"mock","prompt":" the the the the the the the the the the the the the the the the the the the the the","max_tokens":3})");
  EXPECT_EQ(answer.status, 400);
  const Json body = Parsed(answer.body);
  EXPECT_EQ(At(body, {"error", "type"}), Json("BadRequestError"));
  const std::string message = At(body, {"error", "message"}).string();
  EXPECT_NE(message.find("maximum context length is 20 tokens"), std::string::npos) << message;
  EXPECT_NE(message.find("24 tokens (21 in the prompt, 3 in the completion)"), std::string::npos)
      << message;
}

TEST(LiveServing, ARequestThatThePoolCanNeverHoldIsABadRequestAlsoWhenItStreams) {
  const LiveServer server({"--num-gpu-blocks-override", "4", "--block-size", "4"});
  for (const bool stream : {false, true}) {
    const HttpAnswer answer = Post(server.port(), kChat, ChatBody(50, stream));
    EXPECT_EQ(answer.status, 400);
    EXPECT_NE(answer.body.find("KV blocks; the rank has 4"), std::string::npos) << answer.body;
  }
}

TEST(LiveServing, CharactersAreNeverSplitAndASlowReaderBlocksNobody) {
  const LiveServer server({"--echo", "--speedup-ratio", "0"});
  const std::string text = "na\u00efve \u96ea \U0001f642";
  HttpConnection slow(server.port());
  ASSERT_TRUE(slow.Send(HttpText("POST", "/v1/completions",
                                 R"({"model":"mock","stream":true,"max_tokens":40000,"prompt":")" +
                                     std::string(20000, 'Q') + "\"}")));
  const HttpAnswer answer = Post(
      server.port(), kChat,
      R"({"model":"mock","stream":true,"max_tokens":100,"messages":[{"role":"user","content":")" +
          text + "\"}]}");
  std::string joined;
  for (const std::string& event : Events(answer.body)) {
    if (event != "[DONE]") {
      const Json parsed = Parsed(event);
      const Json& content = At(parsed, {"choices", "delta", "content"});
      joined += content.is_string() ? content.string() : "";
    }
  }
  EXPECT_EQ(joined, text);
  EXPECT_NE(answer.body.find(R"("finish_reason":"stop")"), std::string::npos);
  EXPECT_TRUE(slow.ReadUntil("[DONE]"));
}

TEST(LiveServing, OverloadIsAnsweredByTheRule) {
  const LiveServer server(
      {"--max-requests-per-worker", "2", "--prefill-ms", "1", "--decode-ms", "5"});
  HttpConnection first(server.port());
  HttpConnection second(server.port());
  ASSERT_TRUE(first.Send(HttpText("POST", kChat, ChatBody(1000, true))));
  ASSERT_TRUE(second.Send(HttpText("POST", kChat, ChatBody(1000, true))));
  ASSERT_TRUE(first.ReadUntil("data: "));
  ASSERT_TRUE(second.ReadUntil("data: "));
  EXPECT_EQ(Post(server.port(), kChat, ChatBody(1, false)).status, 529);
  first.Close();
  ASSERT_TRUE(Becomes(server.port(), "vllm:num_requests_running", 1));
  EXPECT_EQ(Post(server.port(), kChat, ChatBody(1, false)).status, 200);
}

TEST(LiveServing, TheKvRouterFindsTheWorkerThatHasThePromptAndTheAnswer) {
  const LiveServer server({"--num-workers", "3", "--router-mode", "kv", "--block-size", "4",
                           "--prefill-ms", "1", "--decode-ms", "0.2"});
  std::string prompt;
  for (int i = 0; i < 40; ++i) {
    prompt += i % 2 == 0 ? " the" : " end";
  }
  const auto ask = [&](const std::string& text, int max_tokens) {
    return Parsed(Post(server.port(), "/v1/completions",
                       R"({"model":"mock","prompt":")" + text + R"(","max_tokens":)" +
                           std::to_string(max_tokens) + "}")
                      .body);
  };
  const auto cached = [](const Json& answer) {
    return At(answer, {"usage", "prompt_tokens_details", "cached_tokens"}).number();
  };
  const Json first = ask(prompt, 20);
  EXPECT_EQ(cached(first), 0);
  EXPECT_EQ(cached(ask(prompt, 1)), 36);  // the last block is computed again
  // 40 prompt tokens and all but the last of 20 generated ones have KV.
  const std::string next = prompt + At(first, {"choices", "text"}).string() + " line";
  EXPECT_EQ(cached(ask(next, 1)), 56);
}

TEST(LiveServing, WithoutEventsTheKvRouterGoesByItsOwnPlacements) {
  for (const std::string rule :
       {R"("router_ttl_secs":60)", R"("router_approximate_cache_policy":"lru")"}) {
    const LiveServer server({"--num-workers", "3", "--router-mode", "kv", "--block-size", "4",
                             "--prefill-ms", "1", "--decode-ms", "0.2", "--router-config",
                             R"({"use_kv_events":false,)" + rule + "}"});
    const std::string body = R"({"model":"mock","max_tokens":1,"prompt":")" +
                             std::string(" the end the end the end the end the end the end") +
                             R"("})";
    for (int i = 0; i < 6; ++i) {
      const Json answer = Parsed(Post(server.port(), "/v1/completions", body).body);
      EXPECT_EQ(At(answer, {"usage", "prompt_tokens_details", "cached_tokens"}).number(),
                i == 0 ? 0 : 8)
          << rule << ", request " << i;
    }
  }
}

TEST(LiveServing, ATakenPortEndsTheSecondServerAtOnce) {
  const LiveServer server(kFast);
  ASSERT_NE(server.port(), 0);
  const std::string port = std::to_string(server.port());
  LiveServer second({"--http-port", port});
  EXPECT_EQ(second.Wait(), 1);
  EXPECT_NE(second.output().find("127.0.0.1:" + port), std::string::npos) << second.output();
  LiveServer events({"--zmq-kv-events-ports", port});
  EXPECT_EQ(events.Wait(), 1);
  EXPECT_NE(events.output().find("127.0.0.1:" + port), std::string::npos) << events.output();
}

TEST(LiveServing, ASignalDrainsStreamsAndRefusesNewWork) {
  LiveServer server({"--prefill-ms", "1", "--decode-ms", "5"});
  HttpConnection stream(server.port());
  ASSERT_TRUE(stream.Send(HttpText("POST", kChat, ChatBody(60, true))));
  ASSERT_TRUE(stream.ReadUntil("data: "));
  server.Signal(15);
  HttpAnswer health = Get(server.port(), "/health");
  for (int i = 0; i < 100 && health.status == 200; ++i) {
    health = Get(server.port(), "/health");
  }
  EXPECT_EQ(health.status, 503);
  EXPECT_EQ(Post(server.port(), kChat, ChatBody(1, false)).status, 503);
  EXPECT_EQ(Events(stream.Read().body).back(), "[DONE]");
  EXPECT_EQ(server.Wait(), 0);
}

TEST(LiveServing, GarbageOnTheSocketLeavesTheServerAlive) {
  const LiveServer server({"--speedup-ratio", "0"});
  const std::string good = HttpText("POST", kChat, ChatBody(2, true));
  std::uint64_t state = 1;
  const auto random = [&](std::uint64_t below) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (state >> 33U) % below;
  };
  for (int i = 0; i < 300; ++i) {
    std::string bytes = good;
    for (std::uint64_t edits = random(8) + 1; edits > 0; --edits) {
      const std::size_t at = random(bytes.size());
      switch (random(3)) {
        case 0:
          bytes[at] = static_cast<char>(random(256));
          break;
        case 1:
          bytes.erase(at, random(20));
          break;
        default:
          bytes.insert(at, random(20), static_cast<char>(random(256)));
      }
    }
    HttpConnection connection(server.port());
    connection.Send(bytes);
  }
  EXPECT_EQ(Post(server.port(), kChat, ChatBody(2, false)).status, 200);
  EXPECT_TRUE(Becomes(server.port(), "vllm:num_requests_running", 0));
}

}  // namespace
}  // namespace dynosim::testing
