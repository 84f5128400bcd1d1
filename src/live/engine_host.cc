// SPDX-License-Identifier: Apache-2.0
#include "live/engine_host.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/prctl.h>

#include "base/flat_map.h"
#include "engine/effects.h"
#include "engine/kv_event_buffer.h"
#include "engine/settings.h"
#include "kv/events.h"
#include "live/clock.h"
#include "live/kv_event_codec.h"
#include "live/live_request.h"
#include "live/worker_driver.h"
#include "live/worker_metrics.h"
#include "live/zmq_publisher.h"
#include "workload/request.h"

namespace dynosim::live {

namespace {

constexpr double kHeartbeatMs = 1000.0;

struct Command {
  enum class Kind : std::uint8_t { kSubmit, kCancel };
  Kind kind = Kind::kSubmit;
  std::uint32_t worker = 0;
  std::uint32_t rank = workload::kNone;
  std::uint64_t stream = 0;
  std::shared_ptr<const LiveRequest> request{};
};

// One worker with the streams that it serves.
class HostedWorker final : public PassSink {
 public:
  HostedWorker(const HostOptions& options, std::uint32_t id, std::vector<StreamEvent>& batch)
      : options_(options),
        id_(id),
        pass_counts_(options.engine.dp_size, 0),
        batch_(batch),
        stats_(options.engine.backend, options.engine.dp_size),
        driver_(options.engine, id,
                {.kv_events = options.kv_events != nullptr || options.deliver_kv != nullptr,
                 .pass_metrics = options.pass_metrics != nullptr,
                 .make_up_lateness = options.make_up_lateness},
                table_, *this) {}

  WorkerDriver& driver() { return driver_; }

  void Submit(const Command& command, double now_ms) {
    const std::uint32_t rank =
        command.rank == workload::kNone ? next_rank_++ % driver_.ranks() : command.rank;
    const workload::Request request = table_.Add(command.request, now_ms);
    const std::size_t place = Place(request.id);
    if (place >= streams_.size()) {
      streams_.resize(place + 1);
    }
    streams_[place] = {
        .number = command.stream, .id = request.id, .rank = rank, .entered_ms = now_ms};
    ids_[command.stream] = request.id;
    {
      const std::lock_guard lock(stats_mutex_);
      if (stats_.model_name.empty()) {
        stats_.model_name = command.request->model;
      }
      RankStats& stats = stats_.ranks[rank];
      ++stats.requests;
      stats.max_tokens_param.Observe(static_cast<double>(command.request->output_tokens));
    }
    driver_.Submit(request, rank, now_ms);
  }

  void Cancel(std::uint64_t number, double now_ms) {
    const std::uint32_t* found = ids_.Find(number);
    if (found == nullptr) {
      return;
    }
    const std::uint32_t id = *found;
    const std::uint32_t rank = streams_[Place(id)].rank;
    driver_.Cancel(id, rank, now_ms);
    {
      const std::lock_guard lock(stats_mutex_);
      ++stats_.ranks[rank].finished_abort;
    }
    Leave(id);
    if (!driver_.NextMs()) {
      ForgetLeft();
    }
  }

  // Everything that this worker holds fails.
  void OnStuck(double now_ms) override {
    std::vector<std::uint32_t> ids;
    for (const Stream& stream : streams_) {
      if (stream.id != workload::kNone && !stream.left) {
        ids.push_back(stream.id);
      }
    }
    for (const std::uint32_t id : ids) {
      const Stream& stream = streams_[Place(id)];
      batch_.push_back({.kind = StreamEvent::Kind::kFailed,
                        .worker = id_,
                        .rank = stream.rank,
                        .stream = stream.number,
                        .at_ms = now_ms,
                        .text = "the worker cannot go on with this request"});
      driver_.Cancel(id, stream.rank, now_ms);
      Leave(id);
    }
  }

  void OnAdmitted(const engine::Admission& admission, double now_ms) override {
    if (table_.Find(admission.request) == nullptr) {
      return;
    }
    Stream& stream = streams_[Place(admission.request)];
    if (stream.left || stream.admitted) {
      return;  // admitted again after a preemption
    }
    stream.admitted = true;
    stream.admitted_ms = now_ms;
    const std::uint64_t prompt = table_.Find(admission.request)->prompt.size();
    const std::uint64_t cached = std::min(admission.reused_tokens, prompt);
    const std::lock_guard lock(stats_mutex_);
    RankStats& stats = stats_.ranks[stream.rank];
    stats.prefix_queries += prompt;
    stats.prefix_hits += cached;
    stats.prompt_tokens += prompt;
    stats.prompt_tokens_per_request.Observe(static_cast<double>(prompt));
    stats.queue_s.Observe((now_ms - stream.entered_ms) / 1000.0);
    batch_.push_back({.kind = StreamEvent::Kind::kAdmitted,
                      .worker = id_,
                      .rank = stream.rank,
                      .stream = stream.number,
                      .amount = cached,
                      .at_ms = now_ms});
  }

  void OnKvEvents(std::uint32_t rank, const engine::KvEventBuffer& events,
                  std::size_t /*count*/) override {
    if (options_.deliver_kv) {
      std::vector<KvChange> changes;
      for (const auto& record : events.records()) {
        const auto blocks = events.blocks(record);
        changes.push_back({.worker = id_,
                           .rank = rank,
                           .stored = record.kind == kv::KvEvent::Kind::kStored,
                           .blocks = {blocks.begin(), blocks.end()}});
      }
      options_.deliver_kv(std::move(changes));
    }
    if (options_.kv_events == nullptr) {
      return;
    }
    const bool sent = options_.kv_events->Send(
        Channel(rank), EncodeKvEvents(events, rank, UnixSeconds(), table_,
                                      {.block_size = options_.engine.block_size,
                                       .positional = options_.positional_kv_events}));
    const std::lock_guard lock(stats_mutex_);
    ++stats_.kv_messages;
    stats_.kv_messages_dropped += sent ? 0 : 1;
  }

  // An idle worker says once a second that it lives; returns when the next time is.
  double Heartbeat(double now_ms) {
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

  void OnRankPass(const RankPass& pass, double planned_ms, double end_ms, double now_ms) override {
    PublishPass(pass.rank, pass.metrics, planned_ms, now_ms);
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
      if (signal.kind != engine::Signal::Kind::kFirstToken &&
          !streams_[Place(signal.request)].left) {
        OnEnd(signal, pass.effects, now_ms, stats);
      }
    }
  }

  void OnGauges(std::uint32_t rank, const engine::RankMetrics& metrics) override {
    const std::lock_guard lock(stats_mutex_);
    stats_.ranks[rank].gauges = metrics;
  }

  // Requests that left during a pass are kept until it has told everything about them.
  void ForgetLeft() {
    for (const std::uint32_t id : left_) {
      streams_[Place(id)].id = workload::kNone;
      table_.Remove(id);
    }
    left_.clear();
  }

  WorkerStats Stats() const {
    const std::lock_guard lock(stats_mutex_);
    return stats_;
  }

 private:
  struct Stream {
    std::uint64_t number = 0;
    std::uint32_t id = workload::kNone;  // kNone: nobody
    std::uint32_t rank = 0;
    bool admitted = false;
    bool left = false;
    double entered_ms = 0.0, admitted_ms = 0.0, first_ms = 0.0, last_ms = 0.0;
    std::uint64_t tokens = 0;
  };
  // Most streams of a pass see the same gap: it is observed once, with its weight.
  class GapRun {
   public:
    explicit GapRun(Histogram& histogram) : histogram_(histogram) {}
    void Add(double gap_s, std::uint64_t times) {
      if (times_ > 0 && gap_s != gap_s_) {
        Settle();
      }
      gap_s_ = gap_s;
      times_ += times;
    }
    void Settle() {
      if (times_ > 0) {
        histogram_.Observe(gap_s_, times_);
        times_ = 0;
      }
    }

   private:
    Histogram& histogram_;
    double gap_s_ = 0.0;
    std::uint64_t times_ = 0;
  };

  static std::size_t Place(std::uint32_t id) { return RequestTable::PlaceOf(id); }

  void OnTokens(const engine::TokenGain& gain, double now_ms, RankStats& stats, GapRun& gaps) {
    Stream& stream = streams_[Place(gain.request)];
    if (stream.left) {
      return;
    }
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
    batch_.push_back({.kind = StreamEvent::Kind::kTokens,
                      .worker = id_,
                      .rank = stream.rank,
                      .stream = stream.number,
                      .amount = gain.tokens,
                      .at_ms = now_ms});
  }

  void OnEnd(const engine::Signal& signal, const engine::PassEffects& effects, double now_ms,
             RankStats& stats) {
    const Stream& stream = streams_[Place(signal.request)];
    StreamEvent event = {.kind = StreamEvent::Kind::kFinished,
                         .worker = id_,
                         .rank = stream.rank,
                         .stream = stream.number,
                         .at_ms = now_ms};
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

  void Leave(std::uint32_t id) {
    Stream& stream = streams_[Place(id)];
    if (!stream.left) {
      stream.left = true;
      ids_.Erase(stream.number);
      left_.push_back(id);
    }
  }

  std::size_t Channel(std::uint32_t rank) const {
    return std::size_t{id_} * options_.engine.dp_size + rank;
  }
  void PublishPass(std::uint32_t rank, const engine::ForwardPassMetrics& metrics,
                   double duration_ms, double now_ms) {
    if (options_.pass_metrics != nullptr) {
      options_.pass_metrics->Send(
          Channel(rank), EncodePassMetrics(metrics, std::to_string(id_), rank, pass_counts_[rank]++,
                                           duration_ms / 1000.0));
      last_pass_ms_ = now_ms;
    }
  }

  const HostOptions& options_;
  std::uint32_t id_;
  std::vector<std::uint64_t> pass_counts_;  // messages by rank, heartbeats included
  double last_pass_ms_ = 0.0;
  std::vector<StreamEvent>& batch_;
  RequestTable table_;
  std::vector<Stream> streams_;                // by place of the request in the table
  FlatMap<std::uint64_t, std::uint32_t> ids_;  // stream number -> request id
  std::vector<std::uint32_t> left_;
  std::uint32_t next_rank_ = 0;
  mutable std::mutex stats_mutex_;
  WorkerStats stats_;
  WorkerDriver driver_;
};

}  // namespace

struct EngineHost::State {
  explicit State(HostOptions host_options) : options(std::move(host_options)) {
    for (std::uint32_t id = 0; id < options.workers; ++id) {
      workers.push_back(std::make_unique<HostedWorker>(options, id, batch));
    }
  }

  void Post(Command command) {
    {
      const std::lock_guard lock(mutex);
      commands.push_back(std::move(command));
    }
    wake.notify_one();
  }

  void Run();
  void Apply(std::vector<Command>& list);
  void Deliver() {
    if (!batch.empty()) {
      options.deliver(std::exchange(batch, {}));
    }
  }
  void Wait(std::unique_lock<std::mutex>& lock);

  HostOptions options;
  MonotonicClock clock;
  std::vector<StreamEvent> batch;
  std::vector<std::unique_ptr<HostedWorker>> workers;
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<Command> commands;
  bool stop = false;
  std::thread thread;
};

void EngineHost::State::Apply(std::vector<Command>& list) {
  for (const Command& command : list) {
    const double now_ms = clock.NowMs();
    HostedWorker& worker = *workers[command.worker];
    if (command.kind == Command::Kind::kSubmit) {
      worker.Submit(command, now_ms);
    } else {
      worker.Cancel(command.stream, now_ms);
    }
  }
  list.clear();
}

void EngineHost::State::Run() {
  // Timers of this thread are exact; the default slack is 50 us.
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  std::vector<Command> list;
  std::unique_lock lock(mutex);
  while (!stop) {
    std::swap(list, commands);
    lock.unlock();
    for (const auto& worker : workers) {
      worker->driver().Complete(clock.NowMs());
      if (!worker->driver().NextMs()) {
        worker->ForgetLeft();
      }
    }
    Deliver();
    Apply(list);
    if (clock.NowMs() >= options.startup_ms) {
      for (const auto& worker : workers) {
        if (worker->driver().CanStart()) {
          worker->driver().Start(clock.NowMs());
        }
      }
    }
    Deliver();
    lock.lock();
    Wait(lock);
  }
}

// Sleeps until the next pass ends, a worker can start, or a command comes.
void EngineHost::State::Wait(std::unique_lock<std::mutex>& lock) {
  double next_ms = std::numeric_limits<double>::infinity();
  for (const auto& worker : workers) {
    WorkerDriver& driver = worker->driver();
    if (driver.CanStart()) {
      next_ms = std::min(next_ms, options.startup_ms);
    }
    next_ms = std::min(next_ms, driver.NextMs().value_or(next_ms));
    next_ms = std::min(next_ms, worker->Heartbeat(clock.NowMs()));
  }
  const auto due = [&] { return stop || !commands.empty(); };
  if (next_ms == std::numeric_limits<double>::infinity()) {
    wake.wait(lock, due);
  } else if (next_ms > clock.NowMs()) {
    wake.wait_until(lock, clock.At(next_ms), due);
  }
}

EngineHost::EngineHost(HostOptions options) : state_(std::make_unique<State>(std::move(options))) {}

EngineHost::~EngineHost() { Stop(); }

void EngineHost::Start() {
  state_->thread = std::thread([state = state_.get()] { state->Run(); });
}

void EngineHost::Stop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_one();
  if (state_->thread.joinable()) {
    state_->thread.join();
  }
}

const MonotonicClock& EngineHost::clock() const { return state_->clock; }

void EngineHost::Submit(std::uint32_t worker, std::uint32_t rank, std::uint64_t stream,
                        std::shared_ptr<const LiveRequest> request) {
  state_->Post({.kind = Command::Kind::kSubmit,
                .worker = worker,
                .rank = rank,
                .stream = stream,
                .request = std::move(request)});
}

void EngineHost::Cancel(std::uint32_t worker, std::uint64_t stream) {
  state_->Post({.kind = Command::Kind::kCancel, .worker = worker, .stream = stream});
}

bool EngineHost::started_up() const { return state_->clock.NowMs() >= state_->options.startup_ms; }

WorkerStats EngineHost::Stats(std::uint32_t worker) const {
  return state_->workers[worker]->Stats();
}

}  // namespace dynosim::live
