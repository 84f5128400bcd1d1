// SPDX-License-Identifier: Apache-2.0
#include "live/frontend.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/json.h"
#include "live/api_error.h"
#include "live/api_format.h"
#include "live/api_request.h"
#include "live/builtin_tokenizer.h"
#include "live/clock.h"
#include "live/completion.h"
#include "live/dispatcher.h"
#include "live/frontend_metrics.h"
#include "live/http_server.h"
#include "live/live_request.h"
#include "live/metrics.h"
#include "live/worker_link.h"
#include "workload/request.h"

namespace dynosim::live {

namespace {

constexpr std::string_view kText = "text/plain; charset=utf-8";

std::uint64_t HashOf(std::string_view text) {
  return Xxh3(std::as_bytes(std::span(text.data(), text.size())), 0);
}

}  // namespace

Frontend::Frontend(const FrontendOptions& options, Dispatcher& dispatcher,
                   std::function<double()> now_ms, std::function<void(MetricsText&)> worker_metrics)
    : options_(options),
      dispatcher_(dispatcher),
      now_ms_(std::move(now_ms)),
      worker_metrics_(std::move(worker_metrics)),
      tokenizer_(options.tokenizer ? options.tokenizer : std::make_shared<BuiltinTokenizer>()),
      metrics_(options.metrics_prefix),
      metrics_model_(metrics_.AddModel(options.model)),
      context_{.dispatcher = dispatcher_,
               .metrics = metrics_,
               .tokenizer = *tokenizer_,
               .now_ms = now_ms_,
               .refused_status = options.overload_status,
               .migration_limit = options.migration_limit},
      ids_(static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count())),
      planner_(options.output, *tokenizer_) {}

std::span<const Frontend::RouteEntry> Frontend::Routes() {
  static constexpr std::array kRoutes = {
      RouteEntry{"POST", "/v1/chat/completions", &Frontend::Chat, false},
      RouteEntry{"POST", "/v1/completions", &Frontend::Completions, false},
      RouteEntry{"POST", "/v1/responses", &Frontend::Responses, false},
      RouteEntry{"POST", "/generate", &Frontend::Generate, false},
      RouteEntry{"GET", "/v1/models", &Frontend::Models, false},
      RouteEntry{"GET", "/health", &Frontend::Health, true},
      RouteEntry{"GET", "/live", &Frontend::Live, true},
      RouteEntry{"GET", "/ready", &Frontend::Ready, true},
      RouteEntry{"GET", "/health/ready", &Frontend::Ready, true},
      RouteEntry{"GET", "/ping", &Frontend::Health, true},
      RouteEntry{"GET", "/metrics", &Frontend::Metrics, true},
      RouteEntry{"GET", "/version", &Frontend::Version, true},
      RouteEntry{"POST", "/tokenize", &Frontend::Tokenize, false},
      RouteEntry{"POST", "/detokenize", &Frontend::Detokenize, false},
      RouteEntry{"POST", "/v1/load_lora_adapter", &Frontend::LoadLora, false},
      RouteEntry{"POST", "/v1/unload_lora_adapter", &Frontend::UnloadLora, false},
      RouteEntry{"GET", "/busy_threshold", &Frontend::Thresholds, false},
      RouteEntry{"POST", "/busy_threshold", &Frontend::SetThresholds, false},
  };
  return kRoutes;
}

void Frontend::Handle(const std::shared_ptr<Exchange>& exchange, HttpRequest&& request) {
  if (const std::string_view id = request.Header("x-request-id"); !id.empty()) {
    exchange->AddHeader("x-request-id", std::string(id));
  }
  std::string_view method = request.method;
  if (method == "HEAD") {
    method = "GET";
  }
  std::string_view path = request.path;
  const bool one_model = path.starts_with("/v1/models/");
  const std::string_view lookup = one_model ? "/v1/models" : path;
  const RouteEntry* found = nullptr;
  std::string allowed;
  for (const RouteEntry& entry : Routes()) {
    if (entry.path == lookup) {
      allowed += allowed.empty() ? "" : ", ";
      allowed += entry.method == "GET" ? "GET, HEAD" : entry.method;
      if (entry.method == method) {
        found = &entry;
      }
    }
  }
  if (found != nullptr && draining_ && !found->while_draining) {
    Refuse(exchange, {.status = 503, .message = "Service is not ready", .param = {}});
  } else if (found != nullptr) {
    (this->*found->route)(exchange, request);
  } else if (!allowed.empty()) {
    exchange->AddHeader("allow", allowed);
    Refuse(exchange, {.status = 405, .message = "Method Not Allowed", .param = {}});
  } else {
    Refuse(exchange,
           {.status = 404,
            .message = fmt::format("Route not found: {} {}", request.method, request.path),
            .param = {}});
  }
}

void Frontend::Refuse(const std::shared_ptr<Exchange>& exchange, const ApiError& error) {
  exchange->Respond(error.status, kJson, ErrorBody(error));
}

void Frontend::Chat(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request) {
  Run(Api::kChat, exchange, request);
}
void Frontend::Completions(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request) {
  Run(Api::kCompletions, exchange, request);
}
void Frontend::Responses(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request) {
  Run(Api::kResponses, exchange, request);
}
void Frontend::Generate(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request) {
  if (!options_.sglang_generate) {
    Refuse(exchange, {.status = 404,
                      .message = "Route not found: POST /generate (needs --sglang-generate)",
                      .param = {}});
    return;
  }
  Run(Api::kGenerate, exchange, request);
}

void Frontend::Run(Api api, const std::shared_ptr<Exchange>& exchange, const HttpRequest& http) {
  auto parsed = ParseApiRequest(api, http.body, *tokenizer_, {.strict = options_.strict_fields});
  const bool stream = parsed && parsed->stream;
  const std::optional<std::size_t> known = parsed ? Find(parsed->model) : std::nullopt;
  const std::size_t model = known.value_or(FrontendMetrics::kUnknownModel);
  metrics_.Started(model, api, stream);
  const auto fail = [&](const ApiError& error) {
    Refuse(exchange, error);
    metrics_.Ended(model, api, stream, EndOfStatus(error.status), 0.0);
  };
  if (const auto fault = options_.faults.Next(http.Header("x-return-error"))) {
    fail(*fault);
    return;
  }
  if (!parsed) {
    fail(parsed.error());
    return;
  }
  if (!known) {
    fail({.status = 404,
          .message = fmt::format("The model `{}` does not exist.", parsed->model),
          .param = "model"});
    return;
  }
  if (const std::string_view rank = http.Header("x-data-parallel-rank"); !rank.empty()) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(rank.data(), rank.data() + rank.size(), value);
    if (error != std::errc() || end != rank.data() + rank.size()) {
      fail({.status = 400,
            .message = "X-data-parallel-rank must be an integer",
            .param = "X-data-parallel-rank"});
      return;
    }
    parsed->dp_rank = value;
  }
  if (!dispatcher_.ready()) {
    fail({.status = 503,
          .message = fmt::format("Model `{}` is not ready to serve requests yet: no {} is there",
                                 options_.model,
                                 dispatcher_.available() == 0 ? "worker" : "prefill worker"),
          .param = {}});
    return;
  }
  auto sequences = Plan(*parsed, http.received);
  if (!sequences) {
    fail(sequences.error());
    return;
  }
  if (dispatcher_.AllBusy()) {
    fail({.status = options_.overload_status,
          .message = "Service temporarily overloaded: every worker is over its limit",
          .param = {}});
    return;
  }
  const AnswerHead head = {.id = NewId(),
                           .created_s = UnixWholeSeconds(),
                           .model = parsed->model.empty() ? options_.model : parsed->model,
                           .extension = {}};
  const auto completion =
      std::make_shared<Completion>(context_, exchange, std::move(*parsed), head, model);
  completion->Start(*sequences);
}

std::optional<std::size_t> Frontend::Find(std::string_view model) const {
  if (model.empty() || model == options_.model) {
    return metrics_model_;
  }
  const auto lora = std::ranges::find(loras_, model, &Lora::name);
  return lora == loras_.end() ? std::nullopt : std::optional(lora->metrics_model);
}

ApiResult<std::uint64_t> Frontend::OutputTokens(const ApiRequest& request,
                                                std::uint64_t prompt) const {
  const WorkerCard& card = *dispatcher_.AnyCard();
  const std::uint64_t limit = card.max_model_len;
  if (!request.max_tokens && options_.require_max_tokens) {
    return BadRequest("`max_tokens` (or `max_completion_tokens`) is required", "max_tokens");
  }
  const std::uint64_t fallback = request.api == Api::kCompletions
                                     ? std::min<std::uint64_t>(16, options_.default_max_tokens)
                                     : options_.default_max_tokens;
  const std::uint64_t wanted = request.max_tokens.value_or(fallback);
  if (limit == 0) {
    return wanted;
  }
  if (prompt >= limit) {
    return BadRequest(
        fmt::format("This model's maximum context length is {} tokens. However, you requested {} "
                    "tokens ({} in the prompt, {} in the completion). Please reduce the length of "
                    "the prompt or completion.",
                    limit, prompt + wanted, prompt, wanted),
        request.api == Api::kChat ? "messages" : "prompt");
  }
  return std::min(wanted, limit - prompt);
}

ApiResult<std::vector<std::shared_ptr<const LiveRequest>>> Frontend::Plan(
    const ApiRequest& request, MonotonicClock::Point received) {
  const WorkerCard& card = *dispatcher_.AnyCard();
  // What a rank can hold at all; longer sequences are rejected by the engine.
  if (request.dp_rank && *request.dp_rank >= card.ranks) {
    return BadRequest(
        fmt::format("dp_rank {} is out of bounds for dp_size {}", *request.dp_rank, card.ranks),
        "dp_rank");
  }
  const std::uint64_t capacity = (card.total_blocks + 1) * card.block_size;
  std::vector<std::shared_ptr<const LiveRequest>> out;
  for (const std::vector<std::uint32_t>& prompt : request.prompts) {
    auto output = OutputTokens(request, prompt.size());
    if (!output) {
      return std::unexpected(std::move(output).error());
    }
    for (std::uint32_t n = 0; n < request.n; ++n) {
      auto live = std::make_shared<LiveRequest>();
      live->received = received;
      live->model = options_.model;
      live->prompt = prompt;
      live->output_tokens = *output;
      planner_.Plan(request, n, *live);
      const bool adapted = !request.model.empty() && request.model != options_.model;
      live->lora = adapted ? request.model : "";
      const std::string salt = live->lora + "\n" + request.cache_salt;
      live->salt = salt.size() == 1 ? 0 : HashOf(salt);
      live->priority = request.priority;
      live->dp_rank = request.dp_rank.value_or(workload::kNone);
      live->NameBlocks(card.block_size, capacity);
      out.push_back(std::move(live));
    }
  }
  return out;
}

std::string Frontend::NewId() {
  const std::uint64_t high = (ids_.NextU64() & ~0xF000ULL) | 0x4000ULL;
  const std::uint64_t low = (ids_.NextU64() & ~(3ULL << 62U)) | (2ULL << 62U);
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32U, (high >> 16U) & 0xFFFFU,
                     high & 0xFFFFU, low >> 48U, low & 0xFFFFFFFFFFFFULL);
}

}  // namespace dynosim::live
