// SPDX-License-Identifier: Apache-2.0
#include "live/hosted_worker.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/effects.h"
#include "engine/kv_event_buffer.h"
#include "engine/settings.h"
#include "kv/events.h"
#include "live/clock.h"
#include "live/engine_host.h"
#include "live/kv_event_codec.h"
#include "live/live_request.h"
#include "live/worker_driver.h"
#include "live/worker_metrics.h"
#include "live/zmq_publisher.h"
#include "workload/request.h"

namespace dynosim::live {

namespace {

constexpr double kHeartbeatMs = 1000.0;

}  // namespace

HostedWorker::HostedWorker(const HostOptions& options, const engine::EngineSettings& engine,
                           HostedPlace place, SharedRequests& requests,
                           std::vector<StreamEvent>& batch)
    : options_(options),
      engine_(engine),
      place_(std::move(place)),
      requests_(requests),
      batch_(batch),
      pass_counts_(engine.dp_size, 0),
      stats_(engine.backend, engine.dp_size),
      driver_(
          engine, place_.place,
          {.kv_events = options.kv_events != nullptr || options.deliver_kv != nullptr ||
                        (place_.handoffs != nullptr && place_.handoffs->WantsEvents(place_.place)),
           .pass_metrics = options.pass_metrics != nullptr,
           .keep_lateness = options.keep_lateness,
           .set_aside = place_.handoffs != nullptr},
          requests.table(), *this) {}

void HostedWorker::Submit(std::uint64_t stream, std::uint32_t rank,
                          std::shared_ptr<const LiveRequest> request, double at_ms) {
  rank = rank == workload::kNone ? TakeTurn() : rank;
  const workload::Request added = requests_.Add(std::move(request), at_ms);
  Begin(added.id, stream, rank, at_ms);
  requests_.Drop(added.id);  // from here on this worker alone holds it
  driver_.Submit(added, rank, at_ms);
}

void HostedWorker::Begin(std::uint32_t id, std::uint64_t stream, std::uint32_t rank,
                         double entered_ms) {
  requests_.Hold(id);
  if (Place(id) >= streams_.size()) {
    streams_.resize(Place(id) + 1);
  }
  streams_[Place(id)] = {.number = stream, .id = id, .rank = rank, .entered_ms = entered_ms};
  ids_[stream] = id;
  const LiveRequest& request = *requests_.table().Find(id);
  const std::lock_guard lock(stats_mutex_);
  if (stats_.model_name.empty()) {
    stats_.model_name = request.model;
  }
  RankStats& stats = stats_.ranks[rank];
  ++stats.requests;
  stats.max_tokens_param.Observe(static_cast<double>(request.output_tokens));
}

void HostedWorker::Cancel(std::uint64_t stream, double now_ms) {
  const std::uint32_t* found = ids_.Find(stream);
  if (found == nullptr) {
    return;
  }
  const std::uint32_t id = *found;
  driver_.Cancel(id, streams_[Place(id)].rank, now_ms);
  Abandon(id, true);
  if (!driver_.NextMs()) {
    ForgetLeft();
  }
}

HostedWorker::Stream* HostedWorker::Here(std::uint32_t id) {
  const std::size_t place = Place(id);
  const bool here = place < streams_.size() && streams_[place].id == id && !streams_[place].left;
  return here ? &streams_[place] : nullptr;
}

StreamEvent HostedWorker::EventOf(StreamEvent::Kind kind, const Stream& stream,
                                  double now_ms) const {
  return {.kind = kind,
          .worker = place_.place,
          .rank = stream.rank,
          .stream = stream.number,
          .at_ms = now_ms};
}

void HostedWorker::Tell(StreamEvent::Kind kind, std::uint32_t id, std::string text, double now_ms) {
  if (const Stream* stream = Here(id)) {
    batch_.push_back(EventOf(kind, *stream, now_ms));
    batch_.back().text = std::move(text);
  }
}

void HostedWorker::Abandon(std::uint32_t id, bool aborted) {
  const Stream* stream = Here(id);
  if (stream == nullptr) {
    return;
  }
  if (aborted) {
    const std::lock_guard lock(stats_mutex_);
    ++stats_.ranks[stream->rank].finished_abort;
  }
  Leave(id);
}

void HostedWorker::OnStuck(double now_ms) {
  std::vector<Stream> held;
  std::ranges::copy_if(streams_, std::back_inserter(held), [](const Stream& stream) {
    return stream.id != workload::kNone && !stream.left;
  });
  for (const Stream& stream : held) {
    StreamEvent event = EventOf(StreamEvent::Kind::kFailed, stream, now_ms);
    event.text = "the worker cannot go on with this request";
    batch_.push_back(std::move(event));
    if (place_.handoffs != nullptr) {
      place_.handoffs->Cancel(stream.id, now_ms);
      continue;
    }
    driver_.Cancel(stream.id, stream.rank, now_ms);
    Leave(stream.id);
  }
}

void HostedWorker::OnAdmitted(const engine::Admission& admission, double now_ms) {
  Stream* here = Here(admission.request);
  if (here == nullptr || here->admitted) {
    return;  // canceled, or admitted again after a preemption
  }
  Stream& stream = *here;
  stream.admitted = true;
  stream.admitted_ms = now_ms;
  const std::uint64_t prompt = requests_.table().Find(admission.request)->prompt.size();
  const std::uint64_t cached = std::min(admission.reused_tokens, prompt);
  const std::lock_guard lock(stats_mutex_);
  RankStats& stats = stats_.ranks[stream.rank];
  if (!prefill()) {
    stats.queue_s.Observe((now_ms - stream.entered_ms) / 1000.0);
  }
  if (decode()) {
    return;
  }
  stats.prefix_queries += prompt;
  stats.prefix_hits += cached;
  stats.prompt_tokens += prompt;
  stats.prompt_tokens_per_request.Observe(static_cast<double>(prompt));
  batch_.push_back(EventOf(StreamEvent::Kind::kAdmitted, stream, now_ms));
  batch_.back().amount = cached;
}

void HostedWorker::OnKvEvents(std::uint32_t rank, const engine::KvEventBuffer& events,
                              std::size_t /*count*/) {
  if (place_.handoffs != nullptr) {
    place_.handoffs->OnKvEvents(place_.place, rank, events);
  }
  if (options_.deliver_kv) {
    std::vector<KvChange> changes;
    for (const auto& record : events.records()) {
      const auto blocks = events.blocks(record);
      changes.push_back({.worker = place_.place,
                         .rank = rank,
                         .stored = record.kind == kv::KvEvent::Kind::kStored,
                         .blocks = {blocks.begin(), blocks.end()}});
    }
    options_.deliver_kv(std::move(changes));
  }
  if (options_.kv_events == nullptr || decode()) {
    return;
  }
  const bool sent = options_.kv_events->Send(
      place_.channel + rank, EncodeKvEvents(events, rank, UnixSeconds(), requests_.table(),
                                            {.block_size = engine_.block_size,
                                             .positional = options_.positional_kv_events}));
  const std::lock_guard lock(stats_mutex_);
  ++stats_.kv_messages;
  stats_.kv_messages_dropped += sent ? 0 : 1;
}

double HostedWorker::Heartbeat(double now_ms) {
  if (options_.pass_metrics == nullptr || driver_.NextMs()) {
    return std::numeric_limits<double>::infinity();
  }
  if (now_ms >= last_pass_ms_ + kHeartbeatMs) {
    for (std::uint32_t rank = 0; rank < driver_.ranks(); ++rank) {
      PublishPass(rank, {}, 0.0, now_ms);
    }
  }
  return last_pass_ms_ + kHeartbeatMs;
}

void HostedWorker::OnRankPass(const RankPass& pass, double planned_ms, double end_ms,
                              double now_ms) {
  PublishPass(pass.rank, pass.metrics, planned_ms, now_ms);
  {
    const std::lock_guard lock(stats_mutex_);
    RankStats& stats = stats_.ranks[pass.rank];
    ++stats.passes;
    if (pass.rank == 0) {
      stats_.lateness_s.Observe(std::max(0.0, now_ms - end_ms) / 1000.0);
    }
    GapRun gaps(stats.itl_s);
    for (const engine::TokenGain& gain : pass.effects.gains) {
      OnTokens(gain, now_ms, stats, gaps);
    }
    gaps.Settle();
    for (const engine::Signal& signal : pass.effects.signals) {
      const bool ends = signal.kind == engine::Signal::Kind::kRejected ||
                        (signal.kind == engine::Signal::Kind::kFinished && !prefill());
      if (ends && Here(signal.request) != nullptr) {
        OnEnd(signal, pass.effects, now_ms, stats);
      }
    }
  }
  if (place_.handoffs != nullptr) {
    place_.handoffs->OnRankPass(place_.place, pass, now_ms);
  }
}

void HostedWorker::OnPassEnd(double now_ms) {
  if (place_.handoffs != nullptr) {
    place_.handoffs->OnPassEnd(place_.place, now_ms);
  }
}

void HostedWorker::OnGauges(std::uint32_t rank, const engine::RankMetrics& metrics) {
  const std::lock_guard lock(stats_mutex_);
  stats_.ranks[rank].gauges = metrics;
}

void HostedWorker::ForgetLeft() {
  for (const std::uint32_t id : left_) {
    streams_[Place(id)].id = workload::kNone;
    requests_.Drop(id);
  }
  left_.clear();
}

WorkerStats HostedWorker::Stats() const {
  const std::lock_guard lock(stats_mutex_);
  return stats_;
}

void HostedWorker::OnTokens(const engine::TokenGain& gain, double now_ms, RankStats& stats,
                            GapRun& gaps) {
  Stream* here = prefill() ? nullptr : Here(gain.request);
  if (here == nullptr) {
    return;
  }
  Stream& stream = *here;
  stats.output_tokens += gain.tokens;
  if (stream.tokens == 0) {
    stream.first_ms = now_ms;
    stats.ttft_s.Observe((now_ms - stream.entered_ms) / 1000.0);
    stats.prefill_s.Observe((now_ms - stream.admitted_ms) / 1000.0);
    if (gain.tokens > 1) {
      gaps.Add(0.0, gain.tokens - 1);
    }
  } else {
    gaps.Add((now_ms - stream.last_ms) / 1000.0 / gain.tokens, gain.tokens);
  }
  stream.last_ms = now_ms;
  stream.tokens += gain.tokens;
  batch_.push_back(EventOf(StreamEvent::Kind::kTokens, stream, now_ms));
  batch_.back().amount = gain.tokens;
}

void HostedWorker::OnEnd(const engine::Signal& signal, const engine::PassEffects& effects,
                         double now_ms, RankStats& stats) {
  const Stream& stream = *Here(signal.request);
  StreamEvent event = EventOf(StreamEvent::Kind::kFinished, stream, now_ms);
  if (signal.kind == engine::Signal::Kind::kRejected) {
    ++stats.rejected;
    event.kind = StreamEvent::Kind::kRejected;
    event.text = effects.rejections[signal.index].Text();
  } else {
    ++stats.finished_length;
    stats.e2e_s.Observe((now_ms - stream.entered_ms) / 1000.0);
    stats.decode_s.Observe((now_ms - stream.first_ms) / 1000.0);
    stats.inference_s.Observe((now_ms - stream.admitted_ms) / 1000.0);
    stats.output_tokens_per_request.Observe(static_cast<double>(stream.tokens));
  }
  batch_.push_back(std::move(event));
  Leave(signal.request);
}

void HostedWorker::Leave(std::uint32_t id) {
  Stream& stream = streams_[Place(id)];
  if (!stream.left) {
    stream.left = true;
    ids_.Erase(stream.number);
    left_.push_back(id);
  }
}

void HostedWorker::PublishPass(std::uint32_t rank, const engine::ForwardPassMetrics& metrics,
                               double duration_ms, double now_ms) {
  if (options_.pass_metrics != nullptr) {
    options_.pass_metrics->Send(
        place_.channel + rank,
        EncodePassMetrics(metrics, place_.name, rank, pass_counts_[rank]++, duration_ms / 1000.0));
    last_pass_ms_ = now_ms;
  }
}

}  // namespace dynosim::live
