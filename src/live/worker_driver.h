// SPDX-License-Identifier: Apache-2.0
// WorkerDriver: drives one engine worker at the times it is told, without a clock or a thread of
// its own (chapter 95, section 2). A thread, or a test that moves time by hand, gives it commands
// and calls Advance when NextMs has come. Every call takes the current time; times never go back.
//
// In one call of Advance: the pass that has ended is completed and its effects go out, then the
// next pass starts. Between those two the caller can give commands (Complete, Start).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/effects.h"
#include "engine/kv_event_buffer.h"
#include "engine/settings.h"
#include "engine/worker.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::live {

// One rank of a pass that has ended.
struct RankPass {
  std::uint32_t rank = 0;
  const engine::PassEffects& effects;
  const engine::ForwardPassMetrics& metrics;  // zeros for a rank that had nothing to do
};

// Receives what becomes visible, in the order of chapter 95, 2.3: for each rank KV events, metrics,
// tokens; then the gauges.
class PassSink {
 public:
  PassSink() = default;
  PassSink(const PassSink&) = delete;
  PassSink& operator=(const PassSink&) = delete;
  virtual ~PassSink() = default;

  // A request was admitted in a pass that starts now.
  virtual void OnAdmitted(const engine::Admission& admission, double now_ms) = 0;
  // KV events that are visible now; they may belong to several ranks' calls.
  virtual void OnKvEvents(std::uint32_t rank, const engine::KvEventBuffer& events,
                          std::size_t count) = 0;
  // `planned_ms` is the modelled duration of the pass, `end_ms` its modelled end.
  virtual void OnRankPass(const RankPass& pass, double planned_ms, double end_ms,
                          double now_ms) = 0;
  // After all ranks of a pass: what is held for a handoff is in the worker's effects.
  virtual void OnPassEnd(double /*now_ms*/) {}
  // After all ranks of a pass, and after commands.
  virtual void OnGauges(std::uint32_t rank, const engine::RankMetrics& metrics) = 0;
  // The worker cannot go on with what it holds.
  virtual void OnStuck(double now_ms) = 0;
};

struct DriverOptions {
  bool kv_events = false;
  bool pass_metrics = true;
  // A pass starts at the time of the wake-up, so that lateness adds up, and not when it could have
  // started: at the modelled end of the last one, or when a request came.
  bool keep_lateness = false;
  // Passes of no duration that one call of Start may make. A live worker takes commands between
  // them; the offline loop makes all of them first.
  std::uint64_t instant_passes = 1;
  // A pass of no duration and no effect makes the worker rest until Wake or a command: the worker
  // waits for a handoff, not for itself.
  bool set_aside = false;
  // The worker's log keeps every pass, with the time at which it really ended.
  bool keep_log = false;
};

class WorkerDriver {
 public:
  // `source` knows the requests by id and outlives the driver, as does `sink`.
  WorkerDriver(const engine::EngineSettings& settings, std::uint32_t id,
               const DriverOptions& options, const workload::RequestSource& source, PassSink& sink);

  // `at_ms`: when the request came, which may be before the driver was woken.
  void Submit(const workload::Request& request, std::uint32_t rank, double at_ms);
  // False if the worker does not hold the request.
  bool Cancel(std::uint32_t request, std::uint32_t rank, double now_ms);

  // Handoff commands (engine/core.h). QueueReservation may come at any time, the others only while
  // no pass is in progress.
  bool QueueReservation(const workload::Request& request, std::uint32_t rank, double now_ms,
                        engine::Rejection& why);
  std::optional<engine::Grant> TryReserve(std::uint32_t rank);
  void Activate(std::uint32_t request, std::uint32_t rank);
  void ReleaseSource(std::uint32_t request, std::uint32_t rank);
  void CancelSource(std::uint32_t request, std::uint32_t rank);
  void CancelDestination(std::uint32_t request, std::uint32_t rank);
  // Frees a rank that cannot proceed by itself; false if there is none.
  bool Unstick(double now_ms);
  // Something has happened elsewhere: a worker that rests may try again.
  void Wake() { aside_ = false; }

  // Ends the pass in progress if that is due. Start begins the next one if there is work; a pass of
  // no duration ends at once. Both may be called at any time.
  void Complete(double now_ms);
  void Start(double now_ms);

  // When Complete has something to do; empty while no pass is in progress.
  std::optional<double> NextMs() const {
    return worker_.Busy() ? std::optional(worker_.NextMs()) : std::nullopt;
  }
  bool Idle() const { return !worker_.Busy() && !CanStart(); }
  bool CanStart() const { return !stuck_ && !aside_ && worker_.CanStart(); }
  std::uint32_t ranks() const { return worker_.ranks(); }
  const engine::Worker& worker() const { return worker_; }
  engine::Worker& mutable_worker() { return worker_; }

 private:
  void Finish(double now_ms);
  void PublishEvents(std::uint32_t rank);
  void AfterCommand(std::uint32_t rank);

  engine::Worker worker_;
  DriverOptions options_;
  const workload::RequestSource& source_;
  PassSink& sink_;
  std::vector<bool> took_part_;  // by rank, in the pass in progress
  double started_ms_ = 0.0;
  double last_end_ms_ = 0.0;  // modelled end of the last pass
  // Since when the next pass could have started: there was work when the last one ended, or a
  // request came since. Empty: from whatever starts it.
  std::optional<double> ready_ms_;
  bool stuck_ = false;
  bool aside_ = false;
  std::uint64_t idle_passes_ = 0;
};

}  // namespace dynosim::live
