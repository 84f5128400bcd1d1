// SPDX-License-Identifier: Apache-2.0
#include "live/online_replay.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/effects.h"
#include "engine/kv_event_buffer.h"
#include "engine/worker.h"
#include "kv/events.h"
#include "live/clock.h"
#include "live/online_pools.h"
#include "live/played_worker.h"
#include "live/prompt_thread.h"
#include "live/router_setup.h"
#include "live/worker_driver.h"
#include "router/registry.h"
#include "router/router.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "sim/pool_router.h"
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
      recorder_.OnRouted(d.request.id, sim::RecordOf(d, sim::Pool::kAggregated, shape_, now_ms));
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
      RecordEnd(signal, pass, place, worker, now_ms, recorder_, source_);
    }
  }

  double NextMs() const {
    return live::NextMs(workers_, clock_, source_.NextReadyMs().value_or(kNever));
  }

  sim::Outcome Finish() {
    sim::Outcome outcome = TakeOutcome(workers_, clock_, recorder_);
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
  WakePromptly();
  const MonotonicClock clock;
  return RunOnline(scenario, source, hooks, clock,
                   [&](double at_ms) { std::this_thread::sleep_until(clock.At(at_ms)); });
}

}  // namespace dynosim::live
