// SPDX-License-Identifier: Apache-2.0
#include "live/online_pools.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/effects.h"
#include "engine/kv_event_buffer.h"
#include "engine/settings.h"
#include "live/clock.h"
#include "live/handoff_coordinator.h"
#include "live/online_replay.h"
#include "live/played_worker.h"
#include "live/worker_driver.h"
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

class PoolsRun final : public sim::HandoffListener {
 public:
  PoolsRun(const scenario::Scenario& scenario, workload::RequestSource& source,
           const sim::RunHooks& hooks, const Clock& clock, const WaitUntil& wait)
      : scenario_(scenario),
        source_(source),
        hooks_(hooks),
        clock_(clock),
        wait_(wait),
        recorder_(source.RequestCount(), scenario.capture_per_request, source.Agentic() != nullptr),
        coordinator_({.prefill = *scenario.prefill_engine,
                      .decode = *scenario.decode_engine,
                      .prefill_workers = scenario.num_prefill_workers,
                      .decode_workers = scenario.num_decode_workers,
                      .router = scenario.router},
                     source, *this) {
    const auto add = [&](sim::Pool pool, const engine::EngineSettings& settings,
                         std::uint32_t workers) {
      for (std::uint32_t id = 0; id < workers; ++id) {
        const auto place = static_cast<std::uint32_t>(workers_.size());
        workers_.push_back(std::make_unique<PlayedWorker>(*this, settings, place));
        coordinator_.AddWorker(workers_.back()->driver);
        recorder_.AddWorker(pool, id);
      }
    };
    add(sim::Pool::kPrefill, *scenario.prefill_engine, scenario.num_prefill_workers);
    add(sim::Pool::kDecode, *scenario.decode_engine, scenario.num_decode_workers);
  }

  Result<sim::Outcome> Run() {
    while (true) {
      DYNO_TRY_VOID(PlayMoment());
      const double next_ms = NextMs();
      if (next_ms == kNever) {
        if (recorder_.terminal() == recorder_.arrived()) {
          break;
        }
        if (!coordinator_.Unstick(clock_.NowMs())) {
          return FailedError("", "the workers make no progress with the requests that they hold");
        }
        continue;
      }
      if (scenario_.max_sim_time_ms && next_ms > *scenario_.max_sim_time_ms) {
        break;
      }
      if (hooks_.progress &&
          !hooks_.progress(clock_.NowMs(), recorder_.terminal(), source_.RequestCount())) {
        return FailedError("", "interrupted");
      }
      if (next_ms > clock_.NowMs()) {
        wait_(std::min(next_ms, clock_.NowMs() + kLookMs));
      }
    }
    return Finish();
  }

  void OnRouted(sim::Pool pool, const router::Decision& d, double now_ms) override {
    const router::PoolShape& shape = coordinator_.ShapeOf(pool);
    recorder_.OnRouted(d.request.id, sim::RecordOf(d, pool, shape, now_ms));
    if (pool == sim::Pool::kDecode) {
      recorder_.OnDestination(d.request.id, shape.NumberOf(d.target));
    }
  }
  void OnUnrouted(std::uint32_t, const Error& error, double) override { failed_ = error; }
  void OnRefused(std::uint32_t request, const engine::Rejection& why,
                 workload::TerminalStatus status, double now_ms) override {
    recorder_.record(request).decode_scheduler.reset();
    recorder_.OnRejected(request, now_ms, why, status);
    source_.OnTerminal(request, now_ms, status, 0);
  }
  void OnStep(sim::HandoffStep step, std::uint32_t request, double now_ms,
              double until_ms) override {
    recorder_.OnHandoffStep(step, request, now_ms, until_ms);
  }

 private:
  struct PlayedWorker final : public PassSink {
    PlayedWorker(PoolsRun& owner, const engine::EngineSettings& settings, std::uint32_t in_place)
        : run(owner),
          place(in_place),
          driver(settings, in_place,
                 {.kv_events = owner.coordinator_.WantsEvents(in_place),
                  .pass_metrics = false,
                  .instant_passes = std::numeric_limits<std::uint64_t>::max(),
                  .set_aside = true,
                  .keep_log = true},
                 owner.source_, *this) {}

    void OnAdmitted(const engine::Admission& admission, double now_ms) override {
      run.recorder_.OnAdmitted(admission.request, run.coordinator_.PoolOf(place), now_ms,
                               admission.reused_tokens);
    }
    void OnKvEvents(std::uint32_t rank, const engine::KvEventBuffer& events, std::size_t) override {
      run.coordinator_.OnKvEvents(place, rank, events);
    }
    void OnRankPass(const RankPass& pass, double, double, double now_ms) override {
      run.OnRankPass(place, pass, now_ms);
    }
    void OnPassEnd(double now_ms) override { run.coordinator_.OnPassEnd(place, now_ms); }
    void OnGauges(std::uint32_t, const engine::RankMetrics&) override {}
    void OnStuck(double) override {
      run.failed_ = Error{ErrorKind::kFailed, "", "a worker makes no progress with its requests"};
    }

    PoolsRun& run;
    std::uint32_t place;
    WorkerDriver driver;
  };

  // Everything that happens now, until nothing changes. The order is that of the offline loop.
  Result<void> PlayMoment() {
    while (true) {
      const double now_ms = clock_.NowMs();
      const std::uint64_t passes = passes_;
      for (const auto& worker : workers_) {
        worker->driver.Complete(now_ms);
      }
      bool changed = coordinator_.Act(now_ms);
      changed = ReleaseArrivals(now_ms) || changed;
      for (const auto& worker : workers_) {
        worker->driver.Wake();
      }
      for (const auto& worker : workers_) {
        worker->driver.Start(clock_.NowMs());
      }
      if (failed_) {
        return std::unexpected(*failed_);
      }
      if (!changed && passes == passes_ && coordinator_.NextMs(now_ms).value_or(kNever) > now_ms) {
        return {};
      }
    }
  }

  bool ReleaseArrivals(double now_ms) {
    bool changed = false;
    workload::Request request;
    while (source_.Release(now_ms, request)) {
      recorder_.OnArrival(request);
      coordinator_.Submit(request, workload::kNone);
      changed = true;
    }
    return changed;
  }

  void OnRankPass(std::uint32_t place, const RankPass& pass, double now_ms) {
    const engine::Worker& worker = workers_[place]->driver.worker();
    passes_ += worker.HadEffect() ? 1 : 0;
    if (pass.effects.committed_prefill_tokens > 0) {
      recorder_.OnPrefill(place, worker.passes(), pass.effects.committed_prefill_tokens);
    }
    for (const engine::Signal& signal : pass.effects.signals) {
      if (signal.kind == engine::Signal::Kind::kFirstToken || !coordinator_.Open(signal.request)) {
        continue;
      }
      RecordEnd(signal, pass, place, worker, now_ms, recorder_, source_);
    }
    coordinator_.OnRankPass(place, pass, now_ms);
  }

  double NextMs() const {
    const double next_ms = std::min(source_.NextReadyMs().value_or(kNever),
                                    coordinator_.NextMs(clock_.NowMs()).value_or(kNever));
    return live::NextMs(workers_, clock_, next_ms);
  }

  sim::Outcome Finish() {
    sim::Outcome outcome = TakeOutcome(workers_, clock_, recorder_);
    const double seconds = outcome.end_ms / 1000.0;
    outcome.prefill_worker_seconds = static_cast<double>(scenario_.num_prefill_workers) * seconds;
    outcome.decode_worker_seconds = static_cast<double>(scenario_.num_decode_workers) * seconds;
    outcome.prefill_gpus_per_worker = scenario_.prefill_engine->gpus();
    outcome.decode_gpus_per_worker = scenario_.decode_engine->gpus();
    return outcome;
  }

  const scenario::Scenario& scenario_;
  workload::RequestSource& source_;
  const sim::RunHooks& hooks_;
  const Clock& clock_;
  const WaitUntil& wait_;
  sim::Recorder recorder_;
  HandoffCoordinator coordinator_;
  std::vector<std::unique_ptr<PlayedWorker>> workers_;
  std::uint64_t passes_ = 0;  // that had an effect
  std::optional<Error> failed_;
};

}  // namespace

Result<sim::Outcome> RunOnlinePools(const scenario::Scenario& scenario,
                                    workload::RequestSource& source, const sim::RunHooks& hooks,
                                    const Clock& clock, const WaitUntil& wait) {
  return PoolsRun(scenario, source, hooks, clock, wait).Run();
}

}  // namespace dynosim::live
