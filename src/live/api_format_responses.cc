// SPDX-License-Identifier: Apache-2.0
// The Responses API: named events, each with a sequence number, and a document that holds the
// output as a list of items.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/json.h"
#include "live/api_error.h"
#include "live/api_format.h"
#include "live/api_format_parts.h"
#include "live/api_request.h"

namespace dynosim::live {

namespace {

class ResponsesFormat final : public ApiFormat {
 public:
  explicit ResponsesFormat(const AnswerHead& head) : head_(head) {
    std::erase(head_.id, '-');
    item_ = "msg_" + head_.id;
  }

  bool KeepsText() const override { return true; }

  void Begin(std::string& out) override {
    const std::string body = Response("in_progress", "", "null", "");
    Event("response.created", R"("response":)" + body, out);
    Event("response.in_progress", R"("response":)" + body, out);
    Event("response.output_item.added",
          R"("output_index":0,"item":)" + Item("in_progress", std::string()), out);
    Event("response.content_part.added", Place() + R"(,"part":)" + Part(std::string()), out);
  }

  void Write(const Delta& delta, std::string& out) override {
    if (delta.text.empty()) {
      return;
    }
    std::string fields = Place() + R"(,"delta":)";
    AppendJsonString(fields, delta.text);
    Event(delta.reasoning ? "response.reasoning_text.delta" : "response.output_text.delta", fields,
          out);
  }

  void Finish(std::uint32_t /*choice*/, std::string_view /*reason*/, const Usage& /*usage*/,
              std::string& /*out*/) override {}

  void End(const Usage& usage, std::span<const ChoiceResult> choices, std::string& out) override {
    const ChoiceResult& choice = choices.front();
    const std::string status = Status(choice);
    Event("response.output_text.done", Place() + R"(,"text":)" + Quoted(choice.text), out);
    Event("response.content_part.done", Place() + R"(,"part":)" + Part(choice.text), out);
    Event("response.output_item.done", R"("output_index":0,"item":)" + Item(status, choice.text),
          out);
    Event("response." + status, R"("response":)" + Document(usage, choices), out);
  }

  std::string Document(const Usage& usage, std::span<const ChoiceResult> choices) override {
    const ChoiceResult& choice = choices.front();
    const std::string status = Status(choice);
    const std::string usage_text = fmt::format(
        R"({{"input_tokens":{},"input_tokens_details":{{"cached_tokens":{}}},"output_tokens":{},)"
        R"("output_tokens_details":{{"reasoning_tokens":{}}},"total_tokens":{}}})",
        usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens, usage.reasoning_tokens,
        usage.prompt_tokens + usage.completion_tokens);
    return Response(status, Item(status, choice.text), usage_text,
                    status == "incomplete" ? R"({"reason":"max_output_tokens"})" : "");
  }

  void Error(const ApiError& error, std::string& out) override {
    Event("error",
          R"("message":)" + Quoted(error.message) +
              fmt::format(R"(,"code":"{}","param":null)", ErrorType(error.status)),
          out);
  }

 private:
  static std::string Status(const ChoiceResult& choice) {
    return choice.finish == "length" ? "incomplete" : "completed";
  }
  std::string Place() const {
    return fmt::format(R"("item_id":"{}","output_index":0,"content_index":0,"logprobs":[])", item_);
  }
  static std::string Part(const std::string& text) {
    return R"({"type":"output_text","text":)" + Quoted(text) +
           R"(,"annotations":[],"logprobs":[]})";
  }
  std::string Item(std::string_view status, const std::string& text) const {
    return fmt::format(
        R"({{"type":"message","id":"{}","role":"assistant","status":"{}","content":[{}]}})", item_,
        status, status == "in_progress" ? std::string() : Part(text));
  }
  std::string Response(std::string_view status, const std::string& item, const std::string& usage,
                       const std::string& incomplete) const {
    return fmt::format(
        R"({{"id":"resp_{}","object":"response","created_at":{},"status":"{}","error":null,)"
        R"("incomplete_details":{},"instructions":null,"metadata":{{}},"model":{},"output":[{}],)"
        R"("parallel_tool_calls":true,"temperature":1.0,"tool_choice":"auto","tools":[],)"
        R"("top_p":1.0,"usage":{}}})",
        head_.id, head_.created_s, status, incomplete.empty() ? "null" : incomplete,
        Quoted(head_.model), item, usage);
  }
  void Event(std::string_view type, const std::string& fields, std::string& out) {
    out += fmt::format("event: {0}\ndata: {{\"type\":\"{0}\",\"sequence_number\":{1},{2}}}\n\n",
                       type, sequence_++, fields);
  }

  AnswerHead head_;
  std::string item_;
  std::uint64_t sequence_ = 0;
};

}  // namespace

std::unique_ptr<ApiFormat> MakeResponsesFormat(const ApiRequest& /*request*/,
                                               const AnswerHead& head) {
  return std::make_unique<ResponsesFormat>(head);
}

}  // namespace dynosim::live
