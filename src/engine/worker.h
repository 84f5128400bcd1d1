// SPDX-License-Identifier: Apache-2.0
// Worker: the data-parallel ranks of one engine behind one pass barrier. Time is an argument.
//
// A driver calls Start when the worker can start, waits until NextMs(), and calls Complete. A start
// executes one pass, or plans a run of steady passes: only their end times exist until the run is
// completed, cut short by a request (Submit), or looked into (Publish). Pass-by-pass execution
// gives the same results.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/core.h"
#include "engine/effects.h"
#include "engine/kv_event_buffer.h"
#include "engine/pass_log.h"
#include "engine/settings.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::engine {

struct WorkerOptions {
  bool fast_path = true;
  bool capture_metrics = false;  // forward-pass metrics of every pass
  bool capture_pressure = false;
  bool capture_kv_events = false;
  bool capture_tokens = false;   // who received tokens, pass by pass
  bool publish_metrics = false;  // keep the gauges that an observer sees (Publish, Published)
};

// Progress that an observer sees at pass ends.
struct DecodeCounters {
  std::uint64_t forwards = 0;
  std::uint64_t tokens = 0;
};

class Worker {
 public:
  Worker(const EngineSettings& settings, std::uint32_t id, const WorkerOptions& options);

  std::uint32_t id() const { return id_; }
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(cores_.size()); }

  // Queues a request on a rank. `first_round`: nothing else has been done at this time yet, so that
  // a steady pass that ends exactly now is over and its successor has not begun (chapter 30, 3).
  void Submit(const workload::Request& request, const workload::RequestSource& source,
              std::uint32_t rank, double now_ms, bool first_round);

  // Brings a planned run to the pass in progress, or ends it if that is over, so that a command can
  // be given. Submit does the same.
  void Touch(double now_ms, bool first_round);

  // Removes a request in any state, also during a pass, whose effects still name it. False if it is
  // not here.
  bool Cancel(std::uint32_t rank, std::uint32_t request, double now_ms);

  // Handoff commands (engine/core.h). QueueReservation may come at any time, the others only while
  // the worker is not busy.
  bool QueueReservation(std::uint32_t rank, const workload::Request& request,
                        const workload::RequestSource& source, double now_ms, bool first_round,
                        Rejection& why);
  std::optional<Grant> TryReserve(std::uint32_t rank);
  void Activate(std::uint32_t rank, std::uint32_t request);
  void CancelDestination(std::uint32_t rank, std::uint32_t request);
  void ReleaseSource(std::uint32_t rank, std::uint32_t request);
  void CancelSource(std::uint32_t rank, std::uint32_t request);
  // Frees a stuck rank; its effects are in Effects(), those of the other ranks are empty.
  bool ActWhenStuck(std::uint32_t rank);

  bool Busy() const { return busy_; }
  bool CanStart() const;
  // Starts a pass or a run; the admissions in Effects() happen now. Not while busy.
  void Start(double now_ms);
  // When the pass or run ends. Only while busy.
  double NextMs() const { return log_.EndMs(log_.last()); }
  // Ends the pass or run; now is NextMs(). The signals in Effects() happen now.
  void Complete();

  // Effects of one rank: admissions after Start, the rest after Complete.
  const PassEffects& Effects(std::uint32_t rank) const { return effects_[rank]; }
  bool Failed() const;
  // No rank holds a request.
  bool Drained() const;

  const PassLog& log() const { return log_; }
  PassLog& log() { return log_; }
  std::uint64_t passes() const { return pass_; }
  std::uint64_t OldestLivePass() const;
  std::uint64_t Preemptions() const;

  // Brings gauges and counters to the last pass that ended at or before `now_ms`.
  void Publish(double now_ms);
  const RankMetrics& Published(std::uint32_t rank) const { return published_[rank]; }
  DecodeCounters published_decode() const { return decode_; }
  // End of the last pass that ended at or before `now_ms`, or `otherwise` if there is none.
  double LastEndMs(double now_ms, double otherwise) const;
  // First end of a pass in progress or planned at or after `now_ms`. Only while busy.
  double FirstEndAtOrAfterMs(double now_ms) const;
  // The last pass changed something (an admission, a token, an end, a preemption).
  bool HadEffect() const;

  // Appends the groups of all block names that the ranks hold.
  void AppendHeldGroups(std::vector<std::uint32_t>& groups) const;

  const SchedulerCore& core(std::uint32_t rank) const { return *cores_[rank]; }

  // KV events, when they are captured: those of passes that have been executed and of commands.
  std::vector<KvEventBuffer::Entry> kv_events(std::uint32_t rank) const {
    return events_[rank]->entries();
  }
  KvEventBuffer& kv_buffer(std::uint32_t rank) { return *events_[rank]; }
  // Executes the planned passes that ended at or before `now_ms`.
  void Advance(double now_ms);
  // Last pass that ended at or before `now_ms`, which is not before an earlier call of Complete.
  std::uint64_t LastEnded(double now_ms) const {
    return busy_ ? log_.FirstEndingAfter(pass_, now_ms) - 1 : pass_;
  }
  // End of the first planned pass, not executed yet, that may evict a block; infinity if there is
  // none. `any`: that may produce any event.
  double NextHiddenEventMs(bool any) const;

 private:
  bool Planned() const { return busy_ && !executed_; }
  bool PlanRun(double now_ms);
  void ExecuteThrough(std::uint64_t pass);
  void CutRun(double now_ms, bool first_round);
  void CountDecode();
  void PublishRank(std::uint32_t rank);

  std::uint32_t id_;
  std::uint64_t defer_interval_;
  WorkerOptions options_;
  std::vector<std::unique_ptr<KvEventBuffer>> events_;
  std::vector<std::unique_ptr<SchedulerCore>> cores_;
  std::vector<PassEffects> effects_;
  std::vector<RankMetrics> published_;
  DecodeCounters decode_;
  PassLog log_;
  std::uint64_t pass_ = 0;       // last pass that was started or planned before the current run
  std::uint64_t wave_step_ = 0;  // passes since all ranks were last drained
  bool busy_ = false;
  bool executed_ = false;       // the effects of log_.last() exist
  std::uint64_t advanced_ = 0;  // last planned pass that has been executed
  std::vector<double> durations_, longest_;
};

}  // namespace dynosim::engine
