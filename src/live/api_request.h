// SPDX-License-Identifier: Apache-2.0
// What a client asks for, read from the JSON of any of the generating routes. Fields that change
// nothing in a simulation (temperature, tools, ...) are accepted and checked for their range only;
// unknown fields are ignored unless the server is strict.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "live/api_error.h"
#include "live/tokenizer.h"

namespace dynosim::live {

enum class Api : std::uint8_t { kChat, kCompletions, kResponses, kGenerate };

// Label of the route in metrics.
std::string_view ApiName(Api api);

struct ApiRequest {
  Api api = Api::kChat;
  std::string model;
  std::vector<std::vector<std::uint32_t>> prompts;
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
  std::optional<std::uint64_t> max_tokens{};
  std::uint32_t n = 1;  // choices per prompt
  std::vector<std::string> stop;
  std::vector<std::uint32_t> stop_token_ids;
  bool echo = false;
  bool return_token_ids = false;
  bool logprobs = false;
  std::optional<std::uint64_t> seed{};
  std::string cache_salt;
  std::int32_t priority = 0;
  std::optional<std::uint32_t> dp_rank{};
  std::vector<std::string> annotations;    // nvext
  std::vector<std::string> extra_fields;   // nvext
  std::string request_id;                  // SGLang: rid
  std::vector<std::uint32_t> echo_tokens;  // content of the last message; empty: the whole prompt
};

struct ParseOptions {
  bool strict = false;  // refuse unknown fields
};

// Fails with 400 and the reason.
ApiResult<ApiRequest> ParseApiRequest(Api api, std::string_view body, const Tokenizer& tokenizer,
                                      const ParseOptions& options);

// The prompt of a conversation under the chat template of the tokenizer.
ApiResult<std::vector<std::uint32_t>> ChatPrompt(const Json& messages, bool add_generation_prompt,
                                                 const Tokenizer& tokenizer);

}  // namespace dynosim::live
