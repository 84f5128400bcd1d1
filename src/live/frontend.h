// SPDX-License-Identifier: Apache-2.0
// Frontend: the routes of the HTTP API (chapter 95, section 5) over a dispatcher. Belongs to the
// HTTP server's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/random.h"
#include "live/api_error.h"
#include "live/api_request.h"
#include "live/clock.h"
#include "live/completion.h"
#include "live/dispatcher.h"
#include "live/fault_injection.h"
#include "live/frontend_metrics.h"
#include "live/http_server.h"
#include "live/live_request.h"
#include "live/metrics.h"
#include "live/output_planner.h"
#include "live/tokenizer.h"

namespace dynosim::live {

struct FrontendOptions {
  std::string model = "mock";
  std::shared_ptr<const Tokenizer> tokenizer;  // null: the built-in one
  OutputPlanner::Options output{};
  FaultInjection faults{};
  std::size_t max_loras = 16;  // adapters that may be loaded at a time
  std::uint64_t default_max_tokens = 128;
  bool require_max_tokens = false;
  bool strict_fields = false;
  bool sglang_generate = false;
  int overload_status = 529;
  std::uint32_t migration_limit = 0;
  std::string metrics_prefix = "dynamo_frontend";
};

class Frontend {
 public:
  // `worker_metrics` writes the families of the workers into a page.
  Frontend(const FrontendOptions& options, Dispatcher& dispatcher, std::function<double()> now_ms,
           std::function<void(MetricsText&)> worker_metrics);

  void Handle(const std::shared_ptr<Exchange>& exchange, HttpRequest&& request);

  // Refuses new work from now on.
  void Drain() { draining_ = true; }
  void set_ready(std::function<bool()> ready) { ready_ = std::move(ready); }

 private:
  using Route = void (Frontend::*)(const std::shared_ptr<Exchange>&, const HttpRequest&);
  struct RouteEntry {
    std::string_view method;
    std::string_view path;
    Route route;
    bool while_draining;
  };
  static std::span<const RouteEntry> Routes();

  void Chat(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request);
  void Completions(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request);
  void Responses(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request);
  void Generate(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request);
  void Models(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request);
  void Health(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request);
  void Live(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request);
  void Ready(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request);
  void Metrics(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request);
  void Version(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request);
  void Tokenize(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request);
  void Detokenize(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request);

  void LoadLora(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request);
  void UnloadLora(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request);
  void Thresholds(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request);
  void SetThresholds(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request);

  void Run(Api api, const std::shared_ptr<Exchange>& exchange, const HttpRequest& request);
  ApiResult<std::vector<std::shared_ptr<const LiveRequest>>> Plan(const ApiRequest& request,
                                                                  MonotonicClock::Point received);
  ApiResult<std::uint64_t> OutputTokens(const ApiRequest& request, std::uint64_t prompt) const;
  static void Refuse(const std::shared_ptr<Exchange>& exchange, const ApiError& error);
  // Place of the model in the metrics; nothing when it is not served.
  std::optional<std::size_t> Find(std::string_view model) const;
  void WriteLoras(MetricsText& out) const;
  Json ModelObject(const std::string& name) const;
  Json ThresholdObject() const;
  std::string NewId();

  FrontendOptions options_;
  Dispatcher& dispatcher_;
  std::function<double()> now_ms_;
  std::function<void(MetricsText&)> worker_metrics_;
  std::function<bool()> ready_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  FrontendMetrics metrics_;
  std::size_t metrics_model_;
  CompletionContext context_;
  ChaCha12 ids_;
  OutputPlanner planner_;
  struct Lora {
    std::string name;
    std::string path;
    std::size_t metrics_model = 0;
  };
  std::vector<Lora> loras_;
  bool draining_ = false;
};

}  // namespace dynosim::live
