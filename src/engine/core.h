// SPDX-License-Identifier: Apache-2.0
// SchedulerCore: the scheduler and KV cache of one rank. Time is an argument; nothing here reads a
// clock. Pass numbers are those of the worker (all ranks of a worker share them), from 1.
//
// A core executes passes one by one (RunPass), or many at once when nothing but token growth
// happens (SteadyPasses, SteadyDurationsMs, AdvanceSteady). Both give the same results, bit for
// bit.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/effects.h"
#include "engine/kv_event_buffer.h"
#include "engine/settings.h"
#include "workload/source.h"

namespace dynosim::engine {

struct CoreOptions {
  std::uint32_t worker = 0;
  std::uint32_t rank = 0;
  bool fast_path = true;         // false: every pass is executed one by one
  bool capture_metrics = false;  // fill ForwardPassMetrics (implies pass by pass)
  bool capture_pressure = false;
  bool capture_tokens = false;      // fill PassEffects::gains (implies pass by pass)
  KvEventBuffer* events = nullptr;  // null: no KV events
};

// What passes of a worker that have just ended have in common, over all ranks.
struct WorkerPasses {
  std::uint64_t count = 1;
  bool any_prefill = false;  // a prompt token was computed
  bool any_work = false;     // a batch was executed, or there was something to decode
};

class SchedulerCore {
 public:
  SchedulerCore() = default;
  SchedulerCore(const SchedulerCore&) = delete;
  SchedulerCore& operator=(const SchedulerCore&) = delete;
  virtual ~SchedulerCore() = default;

  // Queues a request. `source` provides its block names and outlives the core.
  virtual void Submit(const workload::Request& request, const workload::RequestSource& source) = 0;

  // True when a pass would have something to do.
  virtual bool HasWork() const = 0;
  // True when no request is held in any state.
  virtual bool Drained() const = 0;

  // Executes one pass that starts at `now_ms` and returns the time at which this rank is done with
  // it. `may_defer`: the worker's pass counter allows to put off prefills
  // (prefill_schedule_interval).
  virtual double RunPass(double now_ms, std::uint64_t pass, bool may_defer,
                         PassEffects& effects) = 0;

  // How many of the coming passes, at most `limit`, are steady: every running request gains a
  // token, nobody is admitted or preempted, and a request ends in the last one at the earliest. 0
  // if the next pass is not steady. `pass` is the last executed pass.
  virtual std::uint64_t SteadyPasses(std::uint64_t pass, std::uint64_t limit) = 0;
  // Durations of steady passes pass + 1, pass + 2, ...
  virtual void SteadyDurationsMs(std::uint64_t pass, std::span<double> out) const = 0;
  // Executes the steady passes up to and including `pass`.
  virtual void AdvanceSteady(std::uint64_t pass, PassEffects& effects) = 0;

  // Within steady passes that are planned: the first one after the last executed pass, at most
  // `through`, that may evict a block; through + 1 if none does.
  virtual std::uint64_t SteadyRemovalPass(std::uint64_t through) const = 0;

  // Called on every rank of the worker, idle ones too, when passes have ended.
  virtual void EndWorkerPasses(const WorkerPasses&) {}

  // Takes a request out of whatever state it is in and gives back what it holds; false if it is not
  // here. Not inside a planned run. The effects of a pass in progress are not changed.
  virtual bool Cancel(std::uint32_t request) = 0;

  // Handoff, source side (chapter 30, section 6). A prefill rank keeps the KV of a request whose
  // prompt is done (PassEffects::held) until it is released or canceled; a request can be canceled
  // in any state. Unknown requests are ignored: they have left already.
  virtual void ReleaseSource(std::uint32_t request);
  virtual void CancelSource(std::uint32_t request);

  // Handoff, destination side. Queues a reservation for the whole prompt; false when it can never
  // be granted, with the reason. TryReserve makes one attempt for the first one in the queue. An
  // activated request takes part in the next pass.
  virtual bool QueueReservation(const workload::Request& request,
                                const workload::RequestSource& source, Rejection& why);
  virtual std::optional<Grant> TryReserve();
  // The end of the next pass of the worker, also on an idle rank, may grant the first one in the
  // queue.
  virtual bool ReservationDue() const { return false; }
  virtual void Activate(std::uint32_t request);
  virtual void CancelDestination(std::uint32_t request);

  // Destination ranks only: frees a rank that cannot proceed (chapter 05, rule 1 b), which
  // aggregated and source ranks do by themselves. False if the rank is not stuck. A rejection is in
  // `effects`.
  virtual bool ActWhenStuck(PassEffects& effects);

  virtual RankMetrics Metrics() const = 0;
  virtual const ForwardPassMetrics& LastPassMetrics() const = 0;

  // Appends the groups of all block names that the cache or a held request has
  // (workload::RequestSource::OnHeldGroups).
  virtual void AppendHeldGroups(std::vector<std::uint32_t>& groups) const = 0;

  // Oldest pass that a held request got a token in; the largest value when there is none.
  virtual std::uint64_t OldestLivePass() const = 0;
};

// One table of engines.
std::unique_ptr<SchedulerCore> MakeCore(const EngineSettings& settings, const CoreOptions& options);

}  // namespace dynosim::engine
