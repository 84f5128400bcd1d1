// SPDX-License-Identifier: Apache-2.0
// Chat and text completions. The other APIs are in api_format_responses.cc and
// api_format_generate.cc.
#include "live/api_format.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "live/api_error.h"
#include "live/api_format_parts.h"
#include "live/api_request.h"

namespace dynosim::live {

namespace {

// `"usage"` of chat and text completions.
std::string UsageText(const Usage& usage, bool text) {
  std::string out = fmt::format(
      R"({{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},"prompt_tokens_details":)",
      usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens + usage.completion_tokens);
  out += fmt::format(R"({{{}"cached_tokens":{}}})", text ? R"("audio_tokens":null,)" : "",
                     usage.cached_tokens);
  if (usage.reasoning_tokens > 0) {
    out += fmt::format(R"(,"completion_tokens_details":{{"reasoning_tokens":{}}})",
                       usage.reasoning_tokens);
  }
  return out + "}";
}

class ChatFormat final : public ApiFormat {
 public:
  ChatFormat(const ApiRequest& request, const AnswerHead& head)
      : include_usage_(request.include_usage),
        continuous_usage_(request.continuous_usage),
        ids_(request.return_token_ids),
        id_(fmt::format(R"("id":"chatcmpl-{}")", head.id)),
        tail_(fmt::format(R"("created":{},"model":{})", head.created_s, Quoted(head.model))),
        chunk_tail_(tail_ + R"(,"object":"chat.completion.chunk")"),
        extension_(head.extension) {}

  void Write(const Delta& delta, std::string& out) override {
    Open(delta.choice, out);
    out += R"("delta":{)";
    if (delta.text.empty()) {
      out += delta.first ? R"("role":"assistant")" : "";
    } else {
      out += delta.reasoning ? R"("reasoning_content":)" : R"("content":)";
      AppendJsonString(out, delta.text);
      out += delta.first ? R"(,"role":"assistant")" : "";
    }
    out += R"(},"finish_reason":null,"logprobs":null)";
    AppendIds(delta.ids, out);
    Close(delta.usage, out);
  }

  void Finish(std::uint32_t choice, std::string_view reason, const Usage& usage,
              std::string& out) override {
    Open(choice, out);
    out += fmt::format(R"("delta":{{}},"finish_reason":"{}","logprobs":null)", reason);
    Close(usage, out);
  }

  void End(const Usage& usage, std::span<const ChoiceResult> /*choices*/,
           std::string& out) override {
    if (include_usage_) {
      out += fmt::format(R"(data: {{{},"choices":[],{},"usage":{}{}}})", id_, chunk_tail_,
                         UsageText(usage, false), Extension(extension_));
      out += "\n\n";
    }
    out += kDone;
  }

  std::string Document(const Usage& usage, std::span<const ChoiceResult> choices) override {
    std::string out = fmt::format(R"({{{},"choices":[)", id_);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const ChoiceResult& choice = choices[i];
      out += fmt::format(R"({}{{"index":{},"message":{{"content":)", i == 0 ? "" : ",", i);
      AppendJsonString(out, choice.text);
      if (!choice.reasoning.empty()) {
        out += R"(,"reasoning_content":)";
        AppendJsonString(out, choice.reasoning);
      }
      out += fmt::format(
          R"(,"refusal":null,"role":"assistant"}},"finish_reason":"{}","logprobs":null)",
          choice.finish);
      AppendIds(choice.ids, out);
      out += '}';
    }
    out += fmt::format(R"(],{},"object":"chat.completion","usage":{}{}}})", tail_,
                       UsageText(usage, false), Extension(extension_));
    return out;
  }

 private:
  void Open(std::uint32_t choice, std::string& out) const {
    out += "data: {";
    out += id_;
    fmt::format_to(std::back_inserter(out), R"(,"choices":[{{"index":{},)", choice);
  }
  void Close(const Usage& usage, std::string& out) const {
    out += "}],";
    out += chunk_tail_;
    if (continuous_usage_) {
      out += R"(,"usage":)" + UsageText(usage, false);
    }
    out += "}\n\n";
  }
  void AppendIds(std::span<const std::uint32_t> ids, std::string& out) const {
    if (ids_) {
      out += R"(,"token_ids":)";
      AppendTokens(ids, out);
    }
  }

  bool include_usage_, continuous_usage_, ids_;
  std::string id_, tail_, chunk_tail_, extension_;
};

class TextFormat final : public ApiFormat {
 public:
  TextFormat(const ApiRequest& request, const AnswerHead& head)
      : include_usage_(request.include_usage),
        continuous_usage_(request.continuous_usage),
        ids_(request.return_token_ids),
        id_(fmt::format(R"("id":"cmpl-{}")", head.id)),
        tail_(fmt::format(
            R"("created":{},"model":{},"object":"text_completion","system_fingerprint":null)",
            head.created_s, Quoted(head.model))),
        extension_(head.extension) {}

  void Write(const Delta& delta, std::string& out) override {
    if (delta.text.empty()) {
      return;
    }
    Open(delta.text, delta.choice, out);
    if (ids_) {
      out += R"(,"token_ids":)";
      AppendTokens(delta.ids, out);
    }
    Close(delta.usage, out);
  }

  void Finish(std::uint32_t choice, std::string_view reason, const Usage& usage,
              std::string& out) override {
    Open("", choice, out);
    out += fmt::format(R"(,"finish_reason":"{}")", reason);
    Close(usage, out);
  }

  void End(const Usage& usage, std::span<const ChoiceResult> /*choices*/,
           std::string& out) override {
    if (include_usage_) {
      out += fmt::format(R"(data: {{{},"choices":[],{},"usage":{}{}}})", id_, tail_,
                         UsageText(usage, true), Extension(extension_));
      out += "\n\n";
    }
    out += kDone;
  }

  std::string Document(const Usage& usage, std::span<const ChoiceResult> choices) override {
    std::string out = fmt::format(R"({{{},"choices":[)", id_);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      out += i == 0 ? R"({"text":)" : R"(,{"text":)";
      AppendJsonString(out, choices[i].text);
      out +=
          fmt::format(R"(,"index":{},"logprobs":null,"finish_reason":"{}")", i, choices[i].finish);
      if (ids_) {
        out += R"(,"token_ids":)";
        AppendTokens(choices[i].ids, out);
      }
      out += '}';
    }
    out +=
        fmt::format(R"(],{},"usage":{}{}}})", tail_, UsageText(usage, true), Extension(extension_));
    return out;
  }

 private:
  void Open(std::string_view text, std::uint32_t choice, std::string& out) const {
    out += "data: {";
    out += id_;
    out += R"(,"choices":[{"text":)";
    AppendJsonString(out, text);
    fmt::format_to(std::back_inserter(out), R"(,"index":{})", choice);
  }
  void Close(const Usage& usage, std::string& out) const {
    out += "}],";
    out += tail_;
    out += continuous_usage_ ? R"(,"usage":)" + UsageText(usage, true) : R"(,"usage":null)";
    out += "}\n\n";
  }

  bool include_usage_, continuous_usage_, ids_;
  std::string id_, tail_, extension_;
};

}  // namespace

void ApiFormat::Error(const ApiError& error, std::string& out) {
  out += "data: " + ErrorBody(error) + "\n\n";
  out += kDone;
}

std::unique_ptr<ApiFormat> MakeFormat(const ApiRequest& request, const AnswerHead& head) {
  switch (request.api) {
    case Api::kChat:
      return std::make_unique<ChatFormat>(request, head);
    case Api::kCompletions:
      return std::make_unique<TextFormat>(request, head);
    case Api::kResponses:
      return MakeResponsesFormat(request, head);
    case Api::kGenerate:
      return MakeGenerateFormat(request, head);
  }
  return nullptr;
}

}  // namespace dynosim::live
