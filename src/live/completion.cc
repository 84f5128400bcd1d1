// SPDX-License-Identifier: Apache-2.0
#include "live/completion.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
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
#include "live/worker_link.h"

namespace dynosim::live {

Completion::Completion(const CompletionContext& context, std::shared_ptr<Exchange> exchange,
                       ApiRequest request, const AnswerHead& head, std::size_t metrics_model)
    : context_(context),
      exchange_(std::move(exchange)),
      request_(std::move(request)),
      model_(metrics_model),
      format_(MakeFormat(request_, head)),
      keep_text_(!request_.stream || format_->KeepsText()),
      started_ms_(context.now_ms()) {}

void Completion::Start(const std::vector<std::shared_ptr<const LiveRequest>>& sequences) {
  FrontendMetrics::Model& metrics = context_.metrics.model(model_);
  results_.resize(sequences.size());
  choices_.reserve(sequences.size());
  open_ = sequences.size();
  exchange_->OnGone([weak = weak_from_this()] {
    if (const auto self = weak.lock()) {
      self->context_.metrics.Disconnected();
      self->CancelRest();
      self->Leave(RequestEnd::kCancelled);
    }
  });
  for (std::uint32_t i = 0; i < sequences.size() && !ended_; ++i) {
    choices_.emplace_back(sequences[i], request_.stop);
    ++metrics.queued;
    metrics.input_tokens.Observe(static_cast<double>(sequences[i]->prompt.size()));
    const auto stream = context_.dispatcher.Submit(sequences[i], shared_from_this(), i);
    if (!stream) {
      Fail({.status = context_.refused_status, .message = stream.error().Text(), .param = {}});
      return;
    }
    choices_[i].stream = *stream;
  }
}

void Completion::OnEvent(std::uint32_t index, const StreamEvent& event) {
  if (ended_ || choices_[index].done) {
    return;
  }
  switch (event.kind) {
    case StreamEvent::Kind::kAdmitted:
      if (choices_[index].migrations > 0) {
        break;
      }
      choices_[index].cached = event.amount;
      context_.metrics.model(model_).cached_tokens.Observe(static_cast<double>(event.amount));
      Streaming();  // the head of the answer may go out: the request will be served
      break;
    case StreamEvent::Kind::kHeld:
    case StreamEvent::Kind::kReserved:
    case StreamEvent::Kind::kActive:
      break;  // between the workers
    case StreamEvent::Kind::kTokens:
      OnTokens(index, event);
      break;
    case StreamEvent::Kind::kFinished:
      FinishChoice(index, choices_[index].request->ends_by_itself ? "stop" : "length");
      break;
    case StreamEvent::Kind::kRejected:
      Fail({.status = 400, .message = event.text, .param = {}});
      break;
    case StreamEvent::Kind::kRefused:
      Fail({.status = context_.refused_status, .message = event.text, .param = {}});
      break;
    case StreamEvent::Kind::kFailed:
      Fail({.status = 503, .message = event.text, .param = {}});
      break;
    case StreamEvent::Kind::kLost:
      if (!Migrate(index)) {
        Fail({.status = 503, .message = event.text, .param = {}});
      }
      break;
  }
}

void Completion::OnBatchEnd() {
  if (!ended_ && request_.stream && exchange_->started()) {
    exchange_->Flush();
  }
}

bool Completion::Streaming() {
  if (!request_.stream) {
    return false;
  }
  if (!exchange_->started()) {
    exchange_->BeginStream(200, "text/event-stream");
    out_.clear();
    format_->Begin(out_);
    exchange_->Append(out_);
  }
  return true;
}

Usage Completion::UsageOf(std::uint32_t index) const {
  const Choice& choice = choices_[index];
  return {.prompt_tokens = choice.request->prompt.size(),
          .completion_tokens = choice.emitted,
          .cached_tokens = choice.cached,
          .reasoning_tokens = std::min(choice.emitted, choice.request->output.reasoning_tokens)};
}

// Choices of one prompt share it: it counts once.
Usage Completion::Total() const {
  Usage total;
  for (std::uint32_t i = 0; i < choices_.size(); ++i) {
    const Usage usage = UsageOf(i);
    total.completion_tokens += usage.completion_tokens;
    total.reasoning_tokens += usage.reasoning_tokens;
    if (i % request_.n == 0) {
      total.prompt_tokens += usage.prompt_tokens;
      total.cached_tokens += usage.cached_tokens;
    }
  }
  return total;
}

void Completion::OnTokens(std::uint32_t index, const StreamEvent& event) {
  Choice& choice = choices_[index];
  FrontendMetrics::Model& metrics = context_.metrics.model(model_);
  const double now_ms = context_.now_ms();
  if (choice.emitted == 0) {
    --metrics.queued;
    metrics.ttft_s.Observe((now_ms - started_ms_) / 1000.0);
  } else {
    metrics.itl_s.Observe((now_ms - choice.last_ms) / 1000.0 / static_cast<double>(event.amount),
                          event.amount);
  }
  choice.last_ms = now_ms;
  metrics.output_tokens_total += event.amount;
  const OutputPlan& plan = choice.request->output;
  text_.clear();
  ids_.clear();
  bool reasoning = choice.emitted < plan.reasoning_tokens;
  bool stopped = false;
  for (std::uint64_t i = 0; i < event.amount && !stopped; ++i) {
    const std::uint64_t ordinal = choice.emitted++;
    const std::uint32_t id = plan.Token(ordinal);
    const bool thinks = ordinal < plan.reasoning_tokens;
    if (thinks != reasoning) {
      WriteText(index, reasoning);
      reasoning = thinks;
    }
    ids_.push_back(id);
    const bool marker = thinks && (ordinal == 0 || ordinal + 1 == plan.reasoning_tokens);
    if (marker) {
      continue;
    }
    if (std::ranges::find(request_.stop_token_ids, id) != request_.stop_token_ids.end()) {
      stopped = true;
    } else if (choice.matcher.active() && !thinks) {
      safe_.clear();
      choice.utf8.Push(context_.tokenizer.Bytes(id), safe_);
      stopped = choice.matcher.Push(safe_, text_);
    } else {
      choice.utf8.Push(context_.tokenizer.Bytes(id), text_);
    }
  }
  if (stopped) {
    context_.dispatcher.Cancel(choice.stream);
  } else if (choice.emitted >= choice.request->output_tokens) {
    choice.utf8.Flush(text_);
    choice.matcher.Flush(text_);
  }
  WriteText(index, reasoning);
  if (stopped) {
    FinishChoice(index, "stop");
  }
}

// Writes what text_ and ids_ hold as one piece.
void Completion::WriteText(std::uint32_t index, bool reasoning) {
  Choice& choice = choices_[index];
  if (ids_.empty()) {
    return;
  }
  if (keep_text_) {
    (reasoning ? results_[index].reasoning : results_[index].text) += text_;
    if (request_.return_token_ids) {
      results_[index].ids.insert(results_[index].ids.end(), ids_.begin(), ids_.end());
    }
  }
  const bool first = !choice.written;
  if (Streaming() && (first || !text_.empty() || request_.return_token_ids)) {
    out_.clear();
    if (first && request_.echo) {
      std::string echoed;
      Utf8Stream utf8;
      for (const std::uint32_t id : choice.request->prompt) {
        utf8.Push(context_.tokenizer.Bytes(id), echoed);
      }
      utf8.Flush(echoed);
      format_->Write({.choice = index, .text = echoed, .first = true, .ids = {}, .usage = {}},
                     out_);
    }
    format_->Write({.choice = index,
                    .text = text_,
                    .reasoning = reasoning,
                    .last = choice.emitted >= choice.request->output_tokens,
                    .first = first && !request_.echo,
                    .ids = ids_,
                    .usage = UsageOf(index)},
                   out_);
    exchange_->Append(out_);
  }
  choice.written = true;
  text_.clear();
  ids_.clear();
}

void Completion::FinishChoice(std::uint32_t index, std::string_view reason) {
  Choice& choice = choices_[index];
  choice.done = true;
  context_.metrics.model(model_).output_tokens.Observe(static_cast<double>(choice.emitted));
  if (choice.emitted == 0) {
    --context_.metrics.model(model_).queued;
  }
  results_[index].finish = reason;
  results_[index].usage = UsageOf(index);
  if (Streaming()) {
    out_.clear();
    format_->Finish(index, reason, UsageOf(index), out_);
    exchange_->Append(out_);
  }
  if (--open_ == 0) {
    FinishAll();
  }
}

void Completion::FinishAll() {
  const Usage total = Total();
  if (Streaming()) {
    out_.clear();
    format_->End(total, results_, out_);
    exchange_->Append(out_);
    exchange_->EndStream();
  } else {
    if (request_.echo) {
      for (std::size_t i = 0; i < choices_.size(); ++i) {
        std::string echoed;
        Utf8Stream utf8;
        for (const std::uint32_t id : choices_[i].request->prompt) {
          utf8.Push(context_.tokenizer.Bytes(id), echoed);
        }
        utf8.Flush(echoed);
        results_[i].text.insert(0, echoed);
      }
    }
    exchange_->Respond(200, "application/json", format_->Document(total, results_));
  }
  Leave(RequestEnd::kSuccess);
}

void Completion::Fail(const ApiError& error) {
  CancelRest();
  if (exchange_->started()) {
    out_.clear();
    format_->Error(error, out_);
    exchange_->Append(out_);
    exchange_->EndStream();
  } else {
    exchange_->Respond(error.status, "application/json", ErrorBody(error));
  }
  Leave(EndOfStatus(error.status));
}

// The sequence so far becomes the prompt of the rest at another worker.
bool Completion::Migrate(std::uint32_t index) {
  Choice& choice = choices_[index];
  const WorkerCard* card = context_.dispatcher.AnyCard();
  if (choice.migrations >= context_.migration_limit || !context_.dispatcher.ready() ||
      card == nullptr || choice.emitted >= choice.request->output_tokens) {
    return false;
  }
  ++choice.migrations;
  context_.metrics.Migrated();
  auto rest = std::make_shared<LiveRequest>(*choice.request);
  for (std::uint64_t i = 0; i < choice.emitted; ++i) {
    rest->prompt.push_back(choice.request->output.Token(i));
  }
  rest->output_tokens -= choice.emitted;
  rest->output.first_ordinal += choice.emitted;
  rest->NameBlocks(card->block_size, (card->total_blocks + 1) * card->block_size);
  const auto stream = context_.dispatcher.Submit(std::move(rest), shared_from_this(), index);
  choice.stream = stream.value_or(0);
  return stream.has_value();
}

void Completion::CancelRest() {
  for (Choice& choice : choices_) {
    if (!choice.done) {
      choice.done = true;
      context_.dispatcher.Cancel(choice.stream);
      if (choice.emitted == 0) {
        --context_.metrics.model(model_).queued;
      }
    }
  }
}

void Completion::Leave(RequestEnd end) {
  if (!ended_) {
    ended_ = true;
    context_.metrics.Ended(model_, request_.api, request_.stream, end,
                           context_.now_ms() - started_ms_);
  }
}

}  // namespace dynosim::live
