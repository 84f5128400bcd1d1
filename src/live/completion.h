// SPDX-License-Identifier: Apache-2.0
// Completion: one generating HTTP request from its acceptance to its last byte. It owns the choices
// of the request, turns tokens into text, applies stop conditions, and writes the answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "live/api_error.h"
#include "live/api_format.h"
#include "live/api_request.h"
#include "live/dispatcher.h"
#include "live/engine_host.h"
#include "live/frontend_metrics.h"
#include "live/http_server.h"
#include "live/live_request.h"
#include "live/text_stream.h"
#include "live/tokenizer.h"

namespace dynosim::live {

// What every completion needs; outlives them.
struct CompletionContext {
  Dispatcher& dispatcher;
  FrontendMetrics& metrics;
  const Tokenizer& tokenizer;
  std::function<double()> now_ms;
  int refused_status = 529;           // of requests that the router refuses
  std::uint32_t migration_limit = 0;  // how often a sequence may go on at another worker
};

class Completion final : public StreamListener, public std::enable_shared_from_this<Completion> {
 public:
  // One sequence per prompt and choice, prompts outermost.
  Completion(const CompletionContext& context, std::shared_ptr<Exchange> exchange,
             ApiRequest request, const AnswerHead& head, std::size_t metrics_model);

  // Sends the sequences to workers.
  void Start(const std::vector<std::shared_ptr<const LiveRequest>>& sequences);

  void OnEvent(std::uint32_t index, const StreamEvent& event) override;
  void OnBatchEnd() override;

 private:
  struct Choice {
    Choice(std::shared_ptr<const LiveRequest> live_request, const std::vector<std::string>& stops)
        : request(std::move(live_request)), matcher(stops) {}
    std::shared_ptr<const LiveRequest> request;
    std::uint64_t stream = 0;
    std::uint64_t emitted = 0;
    std::uint64_t cached = 0;
    std::uint32_t migrations = 0;
    bool written = false;
    bool done = false;
    double last_ms = 0.0;
    Utf8Stream utf8;
    StopMatcher matcher;
  };

  void OnTokens(std::uint32_t index, const StreamEvent& event);
  void WriteText(std::uint32_t index, bool reasoning);
  void FinishChoice(std::uint32_t index, std::string_view reason);
  void FinishAll();
  void Fail(const ApiError& error);
  bool Migrate(std::uint32_t index);
  void CancelRest();
  void Leave(RequestEnd end);
  Usage UsageOf(std::uint32_t index) const;
  Usage Total() const;
  bool Streaming();

  CompletionContext context_;
  std::shared_ptr<Exchange> exchange_;
  ApiRequest request_;
  std::size_t model_;
  std::unique_ptr<ApiFormat> format_;
  std::vector<Choice> choices_;
  std::vector<ChoiceResult> results_;  // texts, when they are needed at the end
  bool keep_text_;
  bool ended_ = false;
  std::uint64_t open_ = 0;
  double started_ms_ = 0.0;
  // Of the piece in progress.
  std::string text_, safe_, out_;
  std::vector<std::uint32_t> ids_;
};

}  // namespace dynosim::live
