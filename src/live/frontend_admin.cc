// SPDX-License-Identifier: Apache-2.0
// Routes of the frontend that do not generate: models, health, metrics, tokens, adapters, limits.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "live/api_error.h"
#include "live/api_request.h"
#include "live/clock.h"
#include "live/frontend.h"
#include "live/http_server.h"
#include "live/metrics.h"
#include "live/tokenizer.h"
#include "live/worker_link.h"

namespace dynosim::live {

namespace {

constexpr std::size_t kAdapterNameMax = 256;

}  // namespace

Json Frontend::ModelObject(const std::string& name) const {
  const WorkerCard* card = dispatcher_.AnyCard();
  const std::uint64_t limit = card == nullptr ? 0 : card->max_model_len;
  Json out;
  out.Add("id", name);
  out.Add("object", "model");
  out.Add("created", UnixWholeSeconds());
  out.Add("owned_by", "dynosim");
  out.Add("root", options_.model);
  out.Add("parent", name == options_.model ? Json() : Json(options_.model));
  out.Add("max_model_len", limit == 0 ? Json() : Json(limit));
  out.Add("context_window", limit);
  return out;
}

void Frontend::Models(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request) {
  constexpr std::string_view kOne = "/v1/models/";
  if (request.path.starts_with(kOne)) {
    const std::string name = request.path.substr(kOne.size());
    if (name.empty() || !Find(name)) {
      Refuse(exchange, {.status = 404,
                        .message = fmt::format("The model `{}` does not exist.", name),
                        .param = "model"});
      return;
    }
    exchange->Respond(200, kJson, DumpJson(ModelObject(name)));
    return;
  }
  Json list(Json::Array{});
  if (dispatcher_.available() > 0) {
    list.array().push_back(ModelObject(options_.model));
    for (const Lora& lora : loras_) {
      list.array().push_back(ModelObject(lora.name));
    }
  }
  Json body;
  body.Add("object", "list");
  body.Add("data", std::move(list));
  exchange->Respond(200, kJson, DumpJson(body));
}

void Frontend::Health(const std::shared_ptr<Exchange>& exchange, const HttpRequest& /*request*/) {
  if (draining_) {
    exchange->Respond(
        503, kJson,
        R"({"status":"not_ready","stage":"draining","message":"Service is not ready"})");
    return;
  }
  Json instances(Json::Array{});
  dispatcher_.ForEach([&](const WorkerCard& card) {
    Json instance;
    instance.Add("instance_id", card.id);
    instance.Add("data_parallel_size", card.ranks);
    instance.Add("total_kv_blocks", card.total_blocks);
    instances.array().push_back(std::move(instance));
  });
  Json body;
  body.Add("status", "healthy");
  body.Add("instances", std::move(instances));
  exchange->Respond(200, kJson, DumpJson(body));
}

void Frontend::Live(const std::shared_ptr<Exchange>& exchange, const HttpRequest& /*request*/) {
  if (draining_) {
    exchange->Respond(503, kJson,
                      R"({"status":"shutting_down","message":"Service is shutting down"})");
  } else {
    exchange->Respond(200, kJson, R"({"status":"live","message":"Service is live"})");
  }
}

void Frontend::Ready(const std::shared_ptr<Exchange>& exchange, const HttpRequest& /*request*/) {
  if (draining_ || !dispatcher_.ready() || (ready_ && !ready_())) {
    exchange->Respond(503, kJson, R"({"status":"not_ready","message":"Service is not ready"})");
  } else {
    exchange->Respond(200, kJson, R"({"status":"ready","message":"Service is ready"})");
  }
}

void Frontend::Metrics(const std::shared_ptr<Exchange>& exchange, const HttpRequest& /*request*/) {
  MetricsText page;
  metrics_.Write(page);
  WriteLoras(page);
  worker_metrics_(page);
  exchange->Respond(200, "text/plain; version=0.0.4; charset=utf-8", page.Text());
}

void Frontend::Version(const std::shared_ptr<Exchange>& exchange, const HttpRequest& /*request*/) {
  exchange->Respond(200, kJson, R"({"version":"0.1.0"})");
}

void Frontend::Tokenize(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request) {
  const auto json = ParseJson(request.body, "");
  if (!json || !json->is_object()) {
    Refuse(exchange,
           {.status = 400, .message = "the request body is not a JSON object", .param = {}});
    return;
  }
  std::vector<std::uint32_t> ids;
  if (const Json* prompt = json->Find("prompt"); prompt != nullptr && prompt->is_string()) {
    const Json* special = json->Find("add_special_tokens");
    const bool add_special = special == nullptr || !special->is_bool() || special->boolean();
    if (const auto encoded = tokenizer_->Encode(prompt->string(), add_special, ids); !encoded) {
      Refuse(exchange, {.status = 400, .message = encoded.error().Text(), .param = "prompt"});
      return;
    }
  } else if (const Json* messages = json->Find("messages")) {
    auto chat = ChatPrompt(*messages, true, *tokenizer_);
    if (!chat) {
      Refuse(exchange, chat.error());
      return;
    }
    ids = std::move(*chat);
  } else {
    Refuse(
        exchange,
        {.status = 400, .message = "prompt (a string) or messages is needed", .param = "prompt"});
    return;
  }
  Json tokens(Json::Array{});
  for (const std::uint32_t id : ids) {
    tokens.array().emplace_back(id);
  }
  Json body;
  body.Add("count", ids.size());
  const WorkerCard* card = dispatcher_.AnyCard();
  body.Add("max_model_len", card == nullptr ? 0 : card->max_model_len);
  body.Add("tokens", std::move(tokens));
  exchange->Respond(200, kJson, DumpJson(body));
}

void Frontend::Detokenize(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request) {
  const auto json = ParseJson(request.body, "");
  const Json* tokens = json && json->is_object() ? json->Find("tokens") : nullptr;
  if (tokens == nullptr || !tokens->is_array()) {
    Refuse(
        exchange,
        {.status = 400, .message = "tokens (an array of token ids) is needed", .param = "tokens"});
    return;
  }
  std::vector<std::uint32_t> ids;
  for (const Json& token : tokens->array()) {
    if (!token.is_integer() || token.number() < 0 ||
        token.number() >= static_cast<double>(tokenizer_->id_end())) {
      Refuse(exchange, {.status = 400,
                        .message = fmt::format("token ids must be below {}", tokenizer_->id_end()),
                        .param = "tokens"});
      return;
    }
    ids.push_back(static_cast<std::uint32_t>(token.number()));
  }
  const auto text = tokenizer_->Decode(ids);
  if (!text) {
    Refuse(exchange, {.status = 400, .message = text.error().Text(), .param = "tokens"});
    return;
  }
  Json body;
  body.Add("prompt", *text);
  exchange->Respond(200, kJson, DumpJson(body));
}

// The text of a string member of the body; empty when it is not there.
static std::string Member(const HttpRequest& request, std::string_view name) {
  const auto json = ParseJson(request.body, "");
  const Json* value = json && json->is_object() ? json->Find(name) : nullptr;
  return value != nullptr && value->is_string() ? value->string() : std::string();
}

void Frontend::LoadLora(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request) {
  const std::string name = Member(request, "lora_name");
  const std::string path = Member(request, "lora_path");
  if (name.empty() || path.empty() || name.size() > kAdapterNameMax) {
    Refuse(exchange, {.status = 400,
                      .message = "lora_name and lora_path must both be given",
                      .param = "lora_name"});
    return;
  }
  if (Find(name)) {
    Refuse(exchange, {.status = 400,
                      .message = fmt::format("The model name '{}' is in use already.", name),
                      .param = "lora_name"});
    return;
  }
  if (loras_.size() >= options_.max_loras) {
    Refuse(exchange,
           {.status = 400,
            .message = fmt::format("{} adapters are loaded already (--max-loras)", loras_.size()),
            .param = "lora_name"});
    return;
  }
  // A name that was loaded before keeps its series; others share one once there are many.
  const std::size_t place = metrics_.model_count() > 4 * options_.max_loras + 2
                                ? metrics_model_
                                : metrics_.AddModel(name);
  loras_.push_back({.name = name, .path = path, .metrics_model = place});
  exchange->Respond(200, "text/plain", fmt::format("Success: LoRA adapter '{}' added.", name));
}

void Frontend::UnloadLora(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request) {
  const std::string name = Member(request, "lora_name");
  const auto found = std::ranges::find(loras_, name, &Lora::name);
  if (found == loras_.end()) {
    Refuse(exchange, {.status = 404,
                      .message = fmt::format("The LoRA adapter '{}' cannot be found.", name),
                      .param = "lora_name"});
    return;
  }
  loras_.erase(found);
  exchange->Respond(200, "text/plain", fmt::format("Success: LoRA adapter '{}' removed.", name));
}

void Frontend::WriteLoras(MetricsText& out) const {
  if (loras_.empty()) {
    return;
  }
  std::string running;
  for (const Lora& lora : loras_) {
    if (metrics_.model(lora.metrics_model).inflight > 0) {
      running += (running.empty() ? "" : ",") + lora.name;
    }
  }
  out.Gauge("vllm:lora_requests_info", "Adapters in use; the value is the time",
            {{"max_lora", std::to_string(options_.max_loras)},
             {"waiting_lora_adapters", ""},
             {"running_lora_adapters", running}},
            static_cast<double>(UnixWholeSeconds()));
}

Json Frontend::ThresholdObject() const {
  const BusyLimits& limits = dispatcher_.limits();
  const auto number = [](const auto& value) { return value ? Json(*value) : Json(); };
  Json out;
  out.Add("model", options_.model);
  out.Add("active_decode_blocks_threshold", number(limits.active_decode_blocks));
  out.Add("active_prefill_tokens_threshold", number(limits.active_prefill_tokens));
  out.Add("active_prefill_tokens_threshold_frac", number(limits.active_prefill_tokens_frac));
  return out;
}

void Frontend::Thresholds(const std::shared_ptr<Exchange>& exchange,
                          const HttpRequest& /*request*/) {
  Json body;
  body.Add("thresholds", Json(Json::Array{ThresholdObject()}));
  exchange->Respond(200, kJson, DumpJson(body));
}

void Frontend::SetThresholds(const std::shared_ptr<Exchange>& exchange,
                             const HttpRequest& request) {
  const auto json = ParseJson(request.body, "");
  if (!json || !json->is_object()) {
    Refuse(exchange,
           {.status = 400, .message = "the request body is not a JSON object", .param = {}});
    return;
  }
  BusyLimits limits = dispatcher_.limits();
  const auto read = [&](std::string_view name, auto& out, double max) {
    const Json* value = json->Find(name);
    if (value == nullptr) {
      return true;
    }
    if (value->is_null()) {
      out.reset();
      return true;
    }
    if (!value->is_number() || !(value->number() >= 0.0) || value->number() > max) {
      Refuse(exchange, {.status = 400,
                        .message = fmt::format("{} must be a number from 0 to {}", name, max),
                        .param = std::string(name)});
      return false;
    }
    out = static_cast<std::remove_cvref_t<decltype(*out)>>(value->number());
    return true;
  };
  if (read("active_decode_blocks_threshold", limits.active_decode_blocks, 1.0) &&
      read("active_prefill_tokens_threshold", limits.active_prefill_tokens, 1e15) &&
      read("active_prefill_tokens_threshold_frac", limits.active_prefill_tokens_frac, 1e9)) {
    dispatcher_.set_limits(limits);
    exchange->Respond(200, kJson, DumpJson(ThresholdObject()));
  }
}

}  // namespace dynosim::live
