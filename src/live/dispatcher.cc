// SPDX-License-Identifier: Apache-2.0
#include "live/dispatcher.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "live/engine_host.h"
#include "live/live_request.h"
#include "live/worker_link.h"

namespace dynosim::live {

std::uint32_t Dispatcher::AddWorker(std::unique_ptr<WorkerLink> link) {
  const auto gone = std::ranges::find_if(
      workers_, [](const Worker& worker) { return worker.link == nullptr; });
  const auto place = static_cast<std::uint32_t>(gone - workers_.begin());
  if (gone == workers_.end()) {
    workers_.emplace_back();
  }
  workers_[place] = {.link = std::move(link), .aside = false, .load = {}};
  return place;
}

void Dispatcher::RemoveWorker(std::uint32_t place) {
  std::vector<StreamEvent> lost;
  for (const Stream& stream : streams_) {
    if (stream.number != 0 && stream.worker == place) {
      lost.push_back({.kind = StreamEvent::Kind::kLost,
                      .stream = stream.number,
                      .text = "Service temporarily unavailable"});
    }
  }
  workers_[place].aside = true;
  OnBatch(lost);
  workers_[place] = {};
}

void Dispatcher::SetAside(std::uint32_t place, bool aside) { workers_[place].aside = aside; }

std::size_t Dispatcher::available() const {
  return static_cast<std::size_t>(std::ranges::count_if(workers_, &Worker::Available));
}

std::size_t Dispatcher::size() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      workers_, [](const Worker& worker) { return worker.link != nullptr; }));
}

const WorkerCard* Dispatcher::AnyCard() const {
  const auto found = std::ranges::find_if(
      workers_, [](const Worker& worker) { return worker.link != nullptr; });
  return found == workers_.end() ? nullptr : &found->link->card();
}

void Dispatcher::ForEach(const std::function<void(const WorkerCard&)>& f) const {
  for (const Worker& worker : workers_) {
    if (worker.link != nullptr) {
      f(worker.link->card());
    }
  }
}

bool Dispatcher::Busy(const Worker& worker) const {
  const WorkerCard& card = worker.link->card();
  const auto over = [](const auto& limit, double value) {
    return limit && value > static_cast<double>(*limit);
  };
  const auto blocks = static_cast<double>(worker.load.blocks);
  const double all_blocks = static_cast<double>(card.total_blocks) * card.ranks;
  const auto prefill = static_cast<double>(worker.load.prefill_tokens);
  return over(limits_.active_decode_blocks, blocks / all_blocks) ||
         over(limits_.active_prefill_tokens, prefill) ||
         over(limits_.active_prefill_tokens_frac,
              prefill / static_cast<double>(card.max_num_batched_tokens)) ||
         (limits_.requests && worker.load.requests >= *limits_.requests);
}

bool Dispatcher::AllBusy() const {
  return std::ranges::all_of(workers_, [&](const Worker& worker) {
    return !worker.Available() || Busy(worker);
  });
}

// Busy workers are left out while others are free. There is at least one available worker.
std::uint32_t Dispatcher::Choose(const LiveRequest& request) {
  const auto count = static_cast<std::uint32_t>(workers_.size());
  if (request.worker < count && workers_[request.worker].Available()) {
    return request.worker;
  }
  std::uint32_t first = next_worker_ % count;
  if (mode_ == RouterMode::kRandom) {
    first = random_.NextBelow(count);
  }
  std::optional<std::uint32_t> chosen;
  std::optional<std::uint32_t> busy;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t place = (first + i) % count;
    const Worker& worker = workers_[place];
    if (!worker.Available()) {
      continue;
    }
    if (Busy(worker)) {
      busy = busy.value_or(place);
    } else if (!chosen || (mode_ == RouterMode::kLeastLoaded &&
                           worker.load.requests < workers_[*chosen].load.requests)) {
      chosen = place;
    }
  }
  const std::uint32_t place = chosen.value_or(busy.value_or(first));
  next_worker_ = place + 1;
  return place;
}

std::uint64_t Dispatcher::Submit(std::shared_ptr<const LiveRequest> request,
                                 std::shared_ptr<StreamListener> listener, std::uint32_t index) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(streams_.size()));
    streams_.emplace_back();
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  const std::uint32_t chosen = Choose(*request);
  Stream& stream = streams_[place];
  stream = {.number = (++uses_ << 32U) | place,
            .listener = std::move(listener),
            .index = index,
            .worker = chosen,
            .prompt = request->prompt.size(),
            .length = request->prompt.size()};
  Worker& worker = workers_[chosen];
  ++worker.load.requests;
  worker.load.prefill_tokens += stream.prompt;
  ++in_flight_;
  const std::uint32_t rank = request->dp_rank < worker.link->card().ranks
                                 ? request->dp_rank
                                 : workload::kNone;
  worker.link->Submit(rank, stream.number, std::move(request));
  return stream.number;
}

Dispatcher::Stream* Dispatcher::Find(std::uint64_t number) {
  const auto place = static_cast<std::uint32_t>(number);
  return place < streams_.size() && streams_[place].number == number ? &streams_[place] : nullptr;
}

void Dispatcher::AddTokens(Stream& stream, std::uint64_t tokens) {
  Worker& worker = workers_[stream.worker];
  const std::uint64_t block = worker.link->card().block_size;
  const auto blocks = [&](std::uint64_t length) { return (length + block - 1) / block; };
  if (stream.length == stream.prompt) {
    worker.load.prefill_tokens -= stream.prompt;
    worker.load.blocks += blocks(stream.length);
  }
  worker.load.blocks += blocks(stream.length + tokens) - blocks(stream.length);
  stream.length += tokens;
}

void Dispatcher::Remove(Stream& stream) {
  Worker& worker = workers_[stream.worker];
  --worker.load.requests;
  const std::uint64_t block = worker.link->card().block_size;
  if (stream.length == stream.prompt) {
    worker.load.prefill_tokens -= stream.prompt;
  } else {
    worker.load.blocks -= (stream.length + block - 1) / block;
  }
  --in_flight_;
  free_.push_back(static_cast<std::uint32_t>(stream.number));
  stream.number = 0;
  stream.listener.reset();
}

void Dispatcher::Cancel(std::uint64_t number) {
  if (Stream* stream = Find(number)) {
    workers_[stream->worker].link->Cancel(number);
    Remove(*stream);
  }
}

void Dispatcher::OnBatch(const std::vector<StreamEvent>& batch) {
  for (const StreamEvent& event : batch) {
    Stream* stream = Find(event.stream);
    if (stream == nullptr) {
      continue;
    }
    const std::shared_ptr<StreamListener> listener = stream->listener;
    const std::uint32_t index = stream->index;
    if (event.kind == StreamEvent::Kind::kTokens) {
      AddTokens(*stream, event.amount);
    } else if (event.kind != StreamEvent::Kind::kAdmitted) {
      Remove(*stream);
    }
    if (touched_.empty() || touched_.back() != listener) {
      touched_.push_back(listener);
    }
    listener->OnEvent(index, event);
  }
  for (const auto& listener : touched_) {
    listener->OnBatchEnd();
  }
  touched_.clear();
}

}  // namespace dynosim::live
