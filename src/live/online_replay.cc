// SPDX-License-Identifier: Apache-2.0
#include "live/online_replay.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <sys/prctl.h>

#include "base/result.h"
#include "engine/effects.h"
#include "engine/kv_event_buffer.h"
#include "engine/worker.h"
#include "kv/events.h"
#include "live/clock.h"
#include "live/online_pools.h"
#include "live/router_setup.h"
#include "live/worker_driver.h"
#include "router/registry.h"
#include "router/router.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "sim/recorder.h"
#include "sim/run.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::live {

namespace {

class OnlineRun {
 public:
  OnlineRun(const scenario::Scenario& scenario, workload::RequestSource& source,
            const sim::RunHooks& hooks, const Clock& clock, const WaitUntil& wait)
      : scenario_(scenario),
        source_(source),
        hooks_(hooks),
        clock_(clock),
        wait_(wait),
        recorder_(source.RequestCount(), scenario.capture_per_request, source.Agentic() != nullptr),
        shape_(ShapeOf(scenario.engine, scenario.num_workers)),
        router_(router::MakeRouter(RouterOf(scenario.router, scenario.engine), shape_,
                                   router::PoolRole::kAggregated)) {
    for (std::uint32_t place = 0; place < scenario.num_workers; ++place) {
      workers_.push_back(std::make_unique<PlayedWorker>(*this, place));
      recorder_.AddWorker(sim::Pool::kAggregated, place);
    }
  }

  Result<sim::Outcome> Run() {
    while (true) {
      const double now_ms = clock_.NowMs();
      for (const auto& worker : workers_) {
        worker->driver.Complete(now_ms);
      }
      DYNO_TRY_VOID(ReleaseArrivals(now_ms));
      Submit(now_ms);
      for (const auto& worker : workers_) {
        worker->driver.Start(clock_.NowMs());
      }
      if (stuck_) {
        return FailedError("", "a worker makes no progress with the requests that it holds");
      }
      const double next_ms = NextMs();
      if (next_ms == kNever && recorder_.terminal() == recorder_.arrived()) {
        break;
      }
      if (scenario_.max_sim_time_ms && next_ms > *scenario_.max_sim_time_ms) {
        break;
      }
      if (hooks_.progress &&
          !hooks_.progress(now_ms, recorder_.terminal(), source_.RequestCount())) {
        return FailedError("", "interrupted");
      }
      if (next_ms > clock_.NowMs()) {
        wait_(std::min(next_ms, clock_.NowMs() + kLookMs));
      }
    }
    return Finish();
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct PlayedWorker final : public PassSink {
    PlayedWorker(OnlineRun& owner, std::uint32_t in_place)
        : run(owner),
          place(in_place),
          driver(
              owner.scenario_.engine, in_place,
              {.kv_events = owner.router_->WantsEvents(), .pass_metrics = false, .keep_log = true},
              owner.source_, *this) {}

    void OnAdmitted(const engine::Admission& admission, double now_ms) override {
      run.recorder_.OnAdmitted(admission.request, sim::Pool::kAggregated, now_ms,
                               admission.reused_tokens);
    }
    void OnKvEvents(std::uint32_t rank, const engine::KvEventBuffer& events, std::size_t) override {
      const std::uint32_t target = run.shape_.NumberOf({place, rank});
      for (const auto& record : events.records()) {
        if (record.kind == kv::KvEvent::Kind::kStored) {
          run.router_->OnStored(target, events.blocks(record));
        } else {
          run.router_->OnRemoved(target, events.blocks(record));
        }
      }
    }
    void OnRankPass(const RankPass& pass, double, double, double now_ms) override {
      run.OnRankPass(place, pass, now_ms);
    }
    void OnGauges(std::uint32_t, const engine::RankMetrics&) override {}
    void OnStuck(double) override { run.stuck_ = true; }

    OnlineRun& run;
    std::uint32_t place;
    WorkerDriver driver;
  };

  Result<void> ReleaseArrivals(double now_ms) {
    workload::Request request;
    while (source_.Release(now_ms, request)) {
      recorder_.OnArrival(request);
      DYNO_TRY_VOID(router_->Place({.request = request, .source = source_, .forced = {}}, now_ms,
                                   decisions_));
    }
    return {};
  }

  // Carries out what the router has decided.
  void Submit(double now_ms) {
    for (const router::Decision& d : std::exchange(decisions_, {})) {
      sim::RoutingRecord record{.queued = d.queued_at_ms.has_value(),
                                .queue_entered_at_ms = d.queued_at_ms.value_or(0.0),
                                .released_at_ms = d.queued_at_ms ? now_ms : 0.0,
                                .worker = d.target.worker,
                                .scheduler = shape_.NumberOf(d.target),
                                .dp_rank = d.target.rank};
      if (d.overlap) {
        record.reported_overlap_tokens = d.overlap->selected * shape_.block_size;
        record.selected_overlap_blocks = d.overlap->selected;
        record.best_available_overlap_blocks = d.overlap->best_available;
      }
      recorder_.OnRouted(d.request.id, std::move(record));
      workers_[d.target.worker]->driver.Submit(d.request, d.target.rank, now_ms);
    }
  }

  void OnRankPass(std::uint32_t place, const RankPass& pass, double now_ms) {
    const engine::Worker& worker = workers_[place]->driver.worker();
    if (pass.effects.committed_prefill_tokens > 0) {
      recorder_.OnPrefill(place, worker.passes(), pass.effects.committed_prefill_tokens);
    }
    for (const engine::Signal& signal : pass.effects.signals) {
      if (signal.kind == engine::Signal::Kind::kFirstToken) {
        router_->PrefillDone(signal.request, now_ms, decisions_);
        continue;
      }
      router_->Terminal(signal.request, now_ms, decisions_);
      if (signal.kind == engine::Signal::Kind::kFinished) {
        const engine::TokenTrack& track = pass.effects.finished[signal.index];
        recorder_.OnCompleted(signal.request, now_ms, track, place, worker);
        source_.OnTerminal(signal.request, now_ms, workload::TerminalStatus::kCompleted,
                           track.tokens);
      } else {
        recorder_.OnRejected(signal.request, now_ms, pass.effects.rejections[signal.index],
                             workload::TerminalStatus::kRejected);
        source_.OnTerminal(signal.request, now_ms, workload::TerminalStatus::kRejected, 0);
      }
    }
  }

  double NextMs() const {
    double next_ms = source_.NextReadyMs().value_or(kNever);
    for (const auto& worker : workers_) {
      next_ms = std::min(next_ms, worker->driver.NextMs().value_or(kNever));
      if (worker->driver.CanStart()) {
        next_ms = std::min(next_ms, clock_.NowMs());
      }
    }
    return next_ms;
  }

  sim::Outcome Finish() {
    for (std::uint32_t place = 0; place < workers_.size(); ++place) {
      recorder_.Settle(place, workers_[place]->driver.mutable_worker());
    }
    sim::Outcome outcome = recorder_.Take(clock_.NowMs());
    outcome.decode_worker_seconds =
        static_cast<double>(scenario_.num_workers) * outcome.end_ms / 1000.0;
    outcome.decode_gpus_per_worker = scenario_.engine.gpus();
    return outcome;
  }

  const scenario::Scenario& scenario_;
  workload::RequestSource& source_;
  const sim::RunHooks& hooks_;
  const Clock& clock_;
  const WaitUntil& wait_;
  sim::Recorder recorder_;
  router::PoolShape shape_;
  std::unique_ptr<router::Router> router_;
  std::vector<router::Decision> decisions_;
  std::vector<std::unique_ptr<PlayedWorker>> workers_;
  bool stuck_ = false;
};

}  // namespace

Result<sim::Outcome> RunOnline(const scenario::Scenario& scenario, workload::RequestSource& source,
                               const sim::RunHooks& hooks, const Clock& clock,
                               const WaitUntil& wait) {
  if (scenario.disaggregated()) {
    return RunOnlinePools(scenario, source, hooks, clock, wait);
  }
  return OnlineRun(scenario, source, hooks, clock, wait).Run();
}

Result<sim::Outcome> RunOnline(const scenario::Scenario& scenario, workload::RequestSource& source,
                               const sim::RunHooks& hooks) {
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  const MonotonicClock clock;
  return RunOnline(scenario, source, hooks, clock,
                   [&](double at_ms) { std::this_thread::sleep_until(clock.At(at_ms)); });
}

}  // namespace dynosim::live
