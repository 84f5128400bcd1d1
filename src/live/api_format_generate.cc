// SPDX-License-Identifier: Apache-2.0
// SGLang's native /generate: token ids in and out, the finish reason on the last token's event.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "live/api_error.h"
#include "live/api_format.h"
#include "live/api_format_parts.h"
#include "live/api_request.h"

namespace dynosim::live {

namespace {

class GenerateFormat final : public ApiFormat {
 public:
  GenerateFormat(const ApiRequest& request, const AnswerHead& head)
      : id_(Quoted(request.request_id.empty() ? head.id : request.request_id)),
        logprobs_(request.logprobs) {}

  // The last event waits for its finish reason.
  void Write(const Delta& delta, std::string& out) override {
    ids_.assign(delta.ids.begin(), delta.ids.end());
    usage_ = delta.usage;
    held_ = delta.last;
    if (!held_) {
      Event("null", out);
    }
  }

  void Finish(std::uint32_t /*choice*/, std::string_view reason, const Usage& usage,
              std::string& out) override {
    if (!held_) {
      ids_.clear();
    }
    usage_ = usage;
    Event(fmt::format(R"({{"type":"{}"}})", reason), out);
    held_ = false;
  }

  void End(const Usage& /*usage*/, std::span<const ChoiceResult> /*choices*/,
           std::string& out) override {
    out += kDone;
  }

  std::string Document(const Usage& usage, std::span<const ChoiceResult> choices) override {
    const ChoiceResult& choice = choices.front();
    ids_ = choice.ids;
    usage_ = usage;
    return "{\"text\":" + Quoted(choice.text) + "," +
           Fields(fmt::format(R"({{"type":"{}","length":{}}})", choice.finish, choice.ids.size())) +
           "}";
  }

  void Error(const ApiError& error, std::string& out) override {
    out += "data: {\"error\":{\"message\":" + Quoted(error.message) +
           fmt::format(",\"code\":{}}}}}\n\n", error.status);
    out += kDone;
  }

 private:
  std::string Fields(std::string_view reason) const {
    std::string out = R"("output_ids":)";
    AppendTokens(ids_, out);
    out += fmt::format(
        R"(,"meta_info":{{"id":{},"finish_reason":{},"prompt_tokens":{},"completion_tokens":{},)"
        R"("cached_tokens":{})",
        id_, reason, usage_.prompt_tokens, usage_.completion_tokens, usage_.cached_tokens);
    if (logprobs_) {
      out += R"(,"output_token_logprobs":[)";
      for (std::size_t i = 0; i < ids_.size(); ++i) {
        out += fmt::format("{}[0.0,{},null]", i == 0 ? "" : ",", ids_[i]);
      }
      out += ']';
    }
    return out + "}";
  }
  void Event(std::string_view reason, std::string& out) {
    out += "data: {" + Fields(reason) + "}\n\n";
  }

  std::string id_;
  bool logprobs_;
  bool held_ = false;
  std::vector<std::uint32_t> ids_;
  Usage usage_;
};

}  // namespace

std::unique_ptr<ApiFormat> MakeGenerateFormat(const ApiRequest& request, const AnswerHead& head) {
  return std::make_unique<GenerateFormat>(request, head);
}

}  // namespace dynosim::live
