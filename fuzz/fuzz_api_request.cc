// SPDX-License-Identifier: Apache-2.0
// Bodies of API requests, in every API, and what follows from those that are accepted.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "live/api_error.h"
#include "live/api_format.h"
#include "live/api_request.h"
#include "live/builtin_tokenizer.h"
#include "live/engine_host.h"
#include "live/text_stream.h"
#include "live/tokenizer.h"
#include "live/worker_wire.h"

namespace dynosim::live {
namespace {

void Answer(const ApiRequest& request, const Tokenizer& tokenizer) {
  const auto format =
      MakeFormat(request, {.id = "0", .created_s = 0, .model = request.model, .extension = {}});
  std::string out;
  std::string text;
  Utf8Stream utf8;
  for (const std::uint32_t id : request.prompts.front()) {
    utf8.Push(tokenizer.Bytes(id), text);
  }
  utf8.Flush(text);
  std::vector<ChoiceResult> choices(1);
  choices[0].text = text;
  choices[0].finish = "length";
  format->Begin(out);
  format->Write({.choice = 0, .text = text, .ids = request.prompts.front(), .usage = {}}, out);
  format->Finish(0, "length", {}, out);
  format->End({}, choices, out);
  DYNO_CHECK(ParseJson(format->Document({}, choices), "document").has_value());
}

void Read(const std::string& text) {
  static const BuiltinTokenizer tokenizer;
  for (const Api api : {Api::kChat, Api::kCompletions, Api::kResponses, Api::kGenerate}) {
    if (auto request = ParseApiRequest(api, text, tokenizer, {.strict = false})) {
      Answer(*request, tokenizer);
    } else {
      (void)ErrorBody(request.error());
    }
  }
  (void)RequestFromJson(text);
  StreamEvent event;
  (void)ParseEvent(text, event);
}

}  // namespace
}  // namespace dynosim::live

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  dynosim::live::Read(std::string(data, data + size));
  return 0;
}
