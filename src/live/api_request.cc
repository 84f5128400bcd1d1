// SPDX-License-Identifier: Apache-2.0
#include "live/api_request.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "config/decode.h"
#include "live/api_error.h"
#include "live/chat_template.h"
#include "live/tokenizer.h"

namespace dynosim::live {

namespace {

constexpr std::uint64_t kStopsMax = 16;
constexpr std::uint64_t kPromptsMax = 1024;

// Reads members of the body with one error for the first that is wrong.
class Body {
 public:
  Body(const Json& json, Api api) : json_(json), api_(api) {}

  const Json* Get(std::string_view name) {
    known_.push_back(name);
    const Json* found = json_.Find(name);
    return found == nullptr || found->is_null() ? nullptr : found;
  }
  void Accept(std::string_view name) { known_.push_back(name); }
  void Fail(std::string_view name, std::string message) {
    if (!error_) {
      error_ = ApiError{.status = 400, .message = std::move(message), .param = std::string(name)};
    }
  }
  void Wrong(std::string_view name, const Json& value, std::string_view allowed) {
    Fail(name, fmt::format("{} must be {}, got {}", name, allowed, config::Shown(value)));
  }

  std::string Text(std::string_view name) {
    const Json* value = Get(name);
    if (value == nullptr) {
      return {};
    }
    if (!value->is_string()) {
      Wrong(name, *value, "a string");
      return {};
    }
    return value->string();
  }
  bool Flag(std::string_view name, bool otherwise) {
    const Json* value = Get(name);
    if (value == nullptr) {
      return otherwise;
    }
    if (!value->is_bool()) {
      Wrong(name, *value, "a boolean");
      return otherwise;
    }
    return value->boolean();
  }
  std::optional<std::uint64_t> Count(std::string_view name, std::uint64_t min, std::uint64_t max) {
    const Json* value = Get(name);
    return value == nullptr ? std::nullopt : CountOf(name, *value, min, max);
  }
  std::optional<std::uint64_t> CountOf(std::string_view name, const Json& value, std::uint64_t min,
                                       std::uint64_t max) {
    const std::optional<std::uint64_t> count = Unsigned(value);
    if (!count || *count < min || *count > max) {
      Wrong(name, value, fmt::format("an integer from {} to {}", min, max));
      return std::nullopt;
    }
    return count;
  }
  void Range(std::string_view name, double min, double max) {
    const Json* value = Get(name);
    if (value != nullptr &&
        !(value->is_number() && value->number() >= min && value->number() <= max)) {
      Wrong(name, *value, fmt::format("a number from {} to {}", min, max));
    }
  }

  static std::optional<std::uint64_t> Unsigned(const Json& value) {
    if (const auto* u = std::get_if<std::uint64_t>(&value.value())) {
      return *u;
    }
    if (const auto* i = std::get_if<std::int64_t>(&value.value()); i != nullptr && *i >= 0) {
      return static_cast<std::uint64_t>(*i);
    }
    return std::nullopt;
  }

  ApiResult<void> Finish(bool strict) {
    if (error_) {
      return std::unexpected(*error_);
    }
    if (strict) {
      for (const auto& [name, value] : json_.object()) {
        if (std::ranges::find(known_, name) == known_.end()) {
          return BadRequest(fmt::format("unsupported parameter `{}`", name), name);
        }
      }
    }
    return {};
  }
  Api api() const { return api_; }

 private:
  const Json& json_;
  Api api_;
  std::vector<std::string_view> known_;
  std::optional<ApiError> error_;
};

// Accepted for their range and without effect: a simulation samples nothing.
void ReadSampling(Body& body) {
  body.Range("temperature", 0.0, 2.0);
  body.Range("top_p", 0.0, 1.0);
  body.Range("min_p", 0.0, 1.0);
  body.Range("frequency_penalty", -2.0, 2.0);
  body.Range("presence_penalty", -2.0, 2.0);
  body.Range("repetition_penalty", 0.0, 1e9);
  for (const std::string_view name : {"top_k",
                                      "logit_bias",
                                      "top_logprobs",
                                      "user",
                                      "metadata",
                                      "store",
                                      "service_tier",
                                      "response_format",
                                      "tools",
                                      "tool_choice",
                                      "parallel_tool_calls",
                                      "reasoning_effort",
                                      "reasoning",
                                      "chat_template_kwargs",
                                      "ignore_eos",
                                      "min_tokens",
                                      "skip_special_tokens",
                                      "spaces_between_special_tokens",
                                      "guided_json",
                                      "guided_regex",
                                      "guided_choice",
                                      "best_of",
                                      "suffix",
                                      "truncate_prompt_tokens",
                                      "kv_transfer_params",
                                      "prompt_logprobs",
                                      "length_penalty",
                                      "use_beam_search",
                                      "text",
                                      "truncation",
                                      "previous_response_id",
                                      "instructions",
                                      "background",
                                      "include",
                                      "max_tool_calls",
                                      "prompt_cache_key",
                                      "safety_identifier",
                                      "verbosity",
                                      "modalities",
                                      "prediction",
                                      "lora_path",
                                      "bootstrap_host",
                                      "bootstrap_port",
                                      "bootstrap_room"}) {
    body.Accept(name);
  }
}

void ReadTokens(Body& body, std::string_view name, const Json& list,
                std::vector<std::uint32_t>& out) {
  out.reserve(list.array().size());
  for (const Json& item : list.array()) {
    const std::optional<std::uint64_t> id = Body::Unsigned(item);
    if (!id || *id > 0xFFFFFFFFULL) {
      body.Wrong(name, item, "a token id");
      return;
    }
    out.push_back(static_cast<std::uint32_t>(*id));
  }
}

void ReadStop(Body& body, ApiRequest& out) {
  if (const Json* stop = body.Get("stop")) {
    const auto take = [&](const Json& item) {
      if (!item.is_string() || item.string().empty()) {
        body.Wrong("stop", item, "a non-empty string, or an array of them");
      } else {
        out.stop.push_back(item.string());
      }
    };
    if (stop->is_array()) {
      std::ranges::for_each(stop->array(), take);
    } else {
      take(*stop);
    }
    if (out.stop.size() > kStopsMax) {
      body.Fail("stop", fmt::format("stop must have at most {} strings", kStopsMax));
    }
  }
  if (const Json* ids = body.Get("stop_token_ids")) {
    if (ids->is_array()) {
      ReadTokens(body, "stop_token_ids", *ids, out.stop_token_ids);
    } else {
      body.Wrong("stop_token_ids", *ids, "an array of token ids");
    }
  }
}

// Ids of a prompt, which must be known where the vocabulary is.
void ReadPromptTokens(Body& body, std::string_view name, const Json& list,
                      const Tokenizer& tokenizer, std::vector<std::uint32_t>& out) {
  ReadTokens(body, name, list, out);
  if (tokenizer.checks_ids() &&
      std::ranges::any_of(out, [&](std::uint32_t id) { return id >= tokenizer.id_end(); })) {
    body.Fail(name, fmt::format("token ids must be below {}", tokenizer.id_end()));
  }
}

void Encode(Body& body, std::string_view name, const std::string& text, bool add_special,
            const Tokenizer& tokenizer, std::vector<std::uint32_t>& out) {
  if (const auto encoded = tokenizer.Encode(text, add_special, out); !encoded) {
    body.Fail(name, encoded.error().Text());
  }
}

// The output limit under all its names; two that disagree are an error.
void ReadMaxTokens(Body& body, ApiRequest& out, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    const std::optional<std::uint64_t> value = body.Count(name, 1, 1ULL << 40);
    if (!value) {
      continue;
    }
    if (out.max_tokens && *out.max_tokens != *value) {
      body.Fail(name, fmt::format("{} contradicts max_tokens", name));
    }
    out.max_tokens = value;
  }
}

void ReadStreamOptions(Body& body, ApiRequest& out) {
  out.stream = body.Flag("stream", false);
  const Json* options = body.Get("stream_options");
  if (options == nullptr) {
    return;
  }
  if (!options->is_object()) {
    body.Wrong("stream_options", *options, "an object");
    return;
  }
  if (!out.stream) {
    body.Fail("stream_options", "stream_options needs stream: true");
    return;
  }
  const auto flag = [&](std::string_view name) {
    const Json* value = options->Find(name);
    if (value == nullptr || value->is_null()) {
      return false;
    }
    if (!value->is_bool()) {
      body.Wrong(name, *value, "a boolean");
      return false;
    }
    return value->boolean();
  };
  out.include_usage = flag("include_usage");
  out.continuous_usage = out.include_usage && flag("continuous_usage_stats");
}

void ReadStrings(Body& body, std::string_view name, const Json& parent,
                 std::vector<std::string>& out) {
  const Json* list = parent.Find(name);
  if (list == nullptr || list->is_null()) {
    return;
  }
  if (!list->is_array()) {
    body.Wrong(name, *list, "an array of strings");
    return;
  }
  for (const Json& item : list->array()) {
    if (!item.is_string()) {
      body.Wrong(name, item, "a string");
      return;
    }
    out.push_back(item.string());
  }
}

void ReadNvext(Body& body, ApiRequest& out) {
  const Json* nvext = body.Get("nvext");
  if (nvext == nullptr) {
    return;
  }
  if (!nvext->is_object()) {
    body.Wrong("nvext", *nvext, "an object");
    return;
  }
  ReadStrings(body, "annotations", *nvext, out.annotations);
  ReadStrings(body, "extra_fields", *nvext, out.extra_fields);
  if (const Json* rank = nvext->Find("dp_rank"); rank != nullptr && !rank->is_null()) {
    if (const auto value = body.CountOf("dp_rank", *rank, 0, 0xFFFFFFFEULL)) {
      out.dp_rank = static_cast<std::uint32_t>(*value);
    }
  }
  if (const Json* salt = nvext->Find("cache_salt"); salt != nullptr && salt->is_string()) {
    out.cache_salt = salt->string();
  }
}

void ReadPrompt(Body& body, const Tokenizer& tokenizer, ApiRequest& out) {
  const Json* prompt = body.Get("prompt");
  if (prompt == nullptr) {
    body.Fail("prompt", "prompt is missing");
    return;
  }
  const bool add_special = body.Flag("add_special_tokens", true);
  const auto add_text = [&](const std::string& text) {
    Encode(body, "prompt", text, add_special, tokenizer, out.prompts.emplace_back());
  };
  if (prompt->is_string()) {
    add_text(prompt->string());
    return;
  }
  constexpr std::string_view kForms =
      "a string, an array of token ids, or an array of strings or of token id arrays";
  if (!prompt->is_array() || prompt->array().empty()) {
    body.Wrong("prompt", *prompt, kForms);
    return;
  }
  if (prompt->array().front().is_number()) {
    ReadPromptTokens(body, "prompt", *prompt, tokenizer, out.prompts.emplace_back());
    return;
  }
  if (prompt->array().size() > kPromptsMax) {
    body.Fail("prompt", fmt::format("prompt must have at most {} prompts", kPromptsMax));
    return;
  }
  for (const Json& item : prompt->array()) {
    if (item.is_string()) {
      add_text(item.string());
    } else if (item.is_array()) {
      ReadPromptTokens(body, "prompt", item, tokenizer, out.prompts.emplace_back());
    } else {
      body.Wrong("prompt", item, kForms);
      return;
    }
  }
}

void ReadMessages(Body& body, const Tokenizer& tokenizer, ApiRequest& out) {
  const Json* messages = body.Get("messages");
  const bool add_prompt = body.Flag("add_generation_prompt", true);
  if (messages == nullptr) {
    body.Fail("messages", "messages is missing");
    return;
  }
  auto prompt = ChatPrompt(*messages, add_prompt, tokenizer);
  if (!prompt) {
    body.Fail(prompt.error().param, prompt.error().message);
    return;
  }
  out.prompts.push_back(std::move(*prompt));
  const Json* content = messages->array().back().Find("content");
  if (content != nullptr && content->is_string()) {
    Encode(body, "messages", content->string(), false, tokenizer, out.echo_tokens);
  }
}

// The Responses API: `input` is a text or a list of messages, `instructions` a system message.
void ReadResponsesInput(Body& body, const Json& json, const Tokenizer& tokenizer, ApiRequest& out) {
  const Json* input = body.Get("input");
  if (input == nullptr) {
    body.Fail("input", "input is missing");
    return;
  }
  Json messages(Json::Array{});
  const auto say = [&](std::string_view role, const Json& content) {
    Json message;
    message.Add("role", std::string(role));
    message.Add("content", content);
    messages.array().push_back(std::move(message));
  };
  if (const Json* instructions = json.Find("instructions");
      instructions != nullptr && instructions->is_string()) {
    say("system", *instructions);
  }
  if (input->is_string()) {
    say("user", *input);
  } else if (input->is_array()) {
    for (const Json& item : input->array()) {
      const Json* role = item.is_object() ? item.Find("role") : nullptr;
      const Json* content = item.is_object() ? item.Find("content") : nullptr;
      if (role == nullptr || !role->is_string() || content == nullptr) {
        body.Wrong("input", item, "a message with role and content");
        return;
      }
      say(role->string(), *content);
    }
  } else {
    body.Wrong("input", *input, "a string or an array of messages");
    return;
  }
  auto prompt = ChatPrompt(messages, true, tokenizer);
  if (!prompt) {
    body.Fail("input", prompt.error().message);
    return;
  }
  out.prompts.push_back(std::move(*prompt));
}

// SGLang's native form: the sampling parameters are in an object of their own.
void ReadGenerate(Body& body, const Tokenizer& tokenizer, ApiRequest& out) {
  out.stream = body.Flag("stream", false);
  out.request_id = body.Text("rid");
  out.return_token_ids = true;
  out.logprobs = body.Flag("return_logprob", false);
  if (const Json* ids = body.Get("input_ids")) {
    if (ids->is_array()) {
      ReadPromptTokens(body, "input_ids", *ids, tokenizer, out.prompts.emplace_back());
    } else {
      body.Wrong("input_ids", *ids, "an array of token ids");
    }
  } else if (const Json* text = body.Get("text"); text != nullptr && text->is_string()) {
    Encode(body, "text", text->string(), true, tokenizer, out.prompts.emplace_back());
  } else {
    body.Fail("input_ids", "input_ids or text is needed");
  }
  const Json* sampling = body.Get("sampling_params");
  if (sampling == nullptr) {
    return;
  }
  if (!sampling->is_object()) {
    body.Wrong("sampling_params", *sampling, "an object");
    return;
  }
  if (const Json* max = sampling->Find("max_new_tokens"); max != nullptr && !max->is_null()) {
    out.max_tokens = body.CountOf("max_new_tokens", *max, 1, 1ULL << 40);
  }
}

ApiResult<void> CheckPrompts(const ApiRequest& request) {
  for (const auto& prompt : request.prompts) {
    if (prompt.empty()) {
      return BadRequest("the prompt must not be empty", "prompt");
    }
  }
  return {};
}

void ReadCommon(Body& body, ApiRequest& out) {
  ReadSampling(body);
  ReadStop(body, out);
  ReadStreamOptions(body, out);
  ReadNvext(body, out);
  out.n = static_cast<std::uint32_t>(body.Count("n", 1, 128).value_or(1));
  out.seed = body.Count("seed", 0, ~0ULL);
  out.echo = body.Flag("echo", false);
  out.return_token_ids = body.Flag("return_token_ids", false);
  body.Accept("logprobs");
  if (const Json* salt = body.Get("cache_salt"); salt != nullptr && salt->is_string()) {
    out.cache_salt = salt->string();
  }
  if (const Json* priority = body.Get("priority")) {
    const auto* value = std::get_if<std::int64_t>(&priority->value());
    const std::optional<std::uint64_t> positive = Body::Unsigned(*priority);
    if (positive && *positive <= 0x7FFFFFFFULL) {
      out.priority = static_cast<std::int32_t>(*positive);
    } else if (value != nullptr && *value >= -0x7FFFFFFFLL && *value < 0) {
      out.priority = static_cast<std::int32_t>(*value);
    } else {
      body.Wrong("priority", *priority, "a 32-bit integer");
    }
  }
}

}  // namespace

std::string_view ApiName(Api api) {
  switch (api) {
    case Api::kChat:
      return "chat_completions";
    case Api::kCompletions:
      return "completions";
    case Api::kResponses:
      return "responses";
    case Api::kGenerate:
      return "generate";
  }
  return {};
}

ApiResult<std::vector<std::uint32_t>> ChatPrompt(const Json& messages, bool add_generation_prompt,
                                                 const Tokenizer& tokenizer) {
  if (!messages.is_array()) {
    return BadRequest("messages must be an array", "messages");
  }
  if (messages.array().empty()) {
    return BadRequest("the 'messages' field cannot be empty; at least one message is required",
                      "messages");
  }
  std::vector<ChatTurn> turns;
  for (const Json& message : messages.array()) {
    const Json* role = message.is_object() ? message.Find("role") : nullptr;
    if (role == nullptr || !role->is_string()) {
      return BadRequest("a message needs a role", "messages");
    }
    ChatTurn& turn = turns.emplace_back(ChatTurn{.role = role->string(), .parts = {}});
    const Json* content = message.Find("content");
    if (content != nullptr && content->is_string()) {
      turn.parts.emplace_back(content->string());
    } else if (content != nullptr && content->is_array()) {
      for (const Json& part : content->array()) {
        const Json* text = part.is_object() ? part.Find("text") : nullptr;
        if (text == nullptr || !text->is_string()) {
          return BadRequest("content parts must have a text; other media are not simulated",
                            "messages");
        }
        turn.parts.emplace_back(text->string());
      }
    } else if (content != nullptr && !content->is_null()) {
      return BadRequest("content must be a string or an array of parts", "messages");
    }
  }
  std::vector<std::uint32_t> out;
  if (const auto encoded = tokenizer.EncodeChat(turns, add_generation_prompt, out); !encoded) {
    return BadRequest(encoded.error().Text(), "messages");
  }
  return out;
}

ApiResult<ApiRequest> ParseApiRequest(Api api, std::string_view text, const Tokenizer& tokenizer,
                                      const ParseOptions& options) {
  auto json = ParseJson(text, "");
  if (!json) {
    return BadRequest("the request body is not valid JSON: " + json.error().Text());
  }
  if (!json->is_object()) {
    return BadRequest("the request body must be a JSON object");
  }
  constexpr std::array<std::string_view, 2> kChatNames = {"max_tokens", "max_completion_tokens"};
  constexpr std::array<std::string_view, 1> kResponsesNames = {"max_output_tokens"};
  Body body(*json, api);
  ApiRequest out;
  out.api = api;
  out.model = body.Text("model");
  switch (api) {
    case Api::kChat:
      ReadCommon(body, out);
      ReadMaxTokens(body, out, kChatNames);
      ReadMessages(body, tokenizer, out);
      break;
    case Api::kCompletions:
      ReadCommon(body, out);
      ReadMaxTokens(body, out, kChatNames);
      ReadPrompt(body, tokenizer, out);
      break;
    case Api::kResponses:
      ReadCommon(body, out);
      out.n = 1;
      ReadMaxTokens(body, out, kResponsesNames);
      ReadResponsesInput(body, *json, tokenizer, out);
      break;
    case Api::kGenerate:
      ReadGenerate(body, tokenizer, out);
      break;
  }
  if (auto read = body.Finish(options.strict); !read) {
    return std::unexpected(std::move(read).error());
  }
  if (auto checked = CheckPrompts(out); !checked) {
    return std::unexpected(std::move(checked).error());
  }
  return out;
}

}  // namespace dynosim::live
