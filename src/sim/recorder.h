// SPDX-License-Identifier: Apache-2.0
// Recorder: turns what happens to requests into records, and keeps the sums that reports need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/scratch_file.h"
#include "engine/effects.h"
#include "engine/worker.h"
#include "sim/gap_ledger.h"
#include "sim/outcome.h"
#include "sim/pass_recorder.h"
#include "workload/request.h"

namespace dynosim::sim {

class Recorder {
 public:
  // `requests`: how many may come; `details`: keep what only per-request reports need; `by_id`:
  // records are ordered by request id, not by arrival; `passes`: keep the passes of all workers.
  Recorder(std::uint32_t requests, bool details, bool by_id = false, bool passes = false);

  // Workers are known by their place in the run's list.
  void AddWorker(Pool pool, std::uint32_t id);

  // A worker's pass starts, or a planned run with this pass first.
  void OnPassStart(std::uint32_t place, std::uint64_t pass, double now_ms) {
    if (keeps_passes_) {
      passes_[place].OnStart(pass, now_ms);
    }
  }
  // The last pass of a worker computed prompt tokens.
  void OnPrefill(std::uint32_t place, std::uint64_t pass, std::uint64_t tokens) {
    outcome_.committed_prefill_tokens += tokens;
    if (keeps_passes_) {
      passes_[place].OnPrefill(pass, tokens);
    }
  }

  void OnArrival(const workload::Request& request);
  void OnRouted(std::uint32_t id, RoutingRecord routing);
  void OnAdmitted(std::uint32_t id, Pool pool, double at_ms, std::uint64_t reused_tokens);
  // The request ended with all its tokens from `worker`; its last pass has ended now.
  void OnCompleted(std::uint32_t id, double now_ms, const engine::TokenTrack& track,
                   std::uint32_t place, const engine::Worker& worker);
  // The request ended without service: rejected, or failed for a refused reservation.
  void OnRejected(std::uint32_t id, double now_ms, const engine::Rejection& rejection,
                  workload::TerminalStatus status);
  // A decode rank accepted the request's reservation.
  void OnDestination(std::uint32_t id, std::uint32_t scheduler) {
    record(id).decode_scheduler = scheduler;
  }

  // Hands records over as soon as nothing can change in them, instead of keeping them. Requests
  // arrive in the order of the records and are numbered in it. Token gaps lie in `scratch` if there
  // is one. Called before anything else.
  void set_ended(std::function<void(const RequestRecord&)> ended, ScratchFile* scratch);
  // Hands over what has ended by now, up to the oldest request that has not.
  void PassOnEnded();

  // `until_ms`: end of a transfer that starts.
  void OnHandoffStep(HandoffStep step, std::uint32_t id, double now_ms, double until_ms);

  RequestRecord& record(std::uint32_t id) { return outcome_.records[PlaceOf(id)]; }
  RequestDetail* detail(std::uint32_t id) {
    return details_ ? &outcome_.details[PlaceOf(id)] : nullptr;
  }
  std::uint64_t terminal() const { return terminal_; }
  std::uint64_t arrived() const { return dropped_ + outcome_.records.size(); }
  Outcome& outcome() { return outcome_; }

  // Settles passes that no held request refers to, when the worker's log has grown long.
  void MaybeSettle(std::uint32_t place, engine::Worker& worker);
  // Settles all passes of a worker and takes its counters; in place order, at the end of the run.
  void Settle(std::uint32_t place, engine::Worker& worker);
  // Orders the records and hands the outcome over. `end_ms`: the end of the run.
  Outcome Take(double end_ms);

 private:
  std::uint32_t PlaceOf(std::uint32_t id) const {
    return index_.empty() ? id - dropped_ : index_[id];
  }
  void TakeGaps();
  void OrderRecords();

  Outcome outcome_;
  std::vector<std::uint32_t> index_;  // request id -> record; empty when records are handed over
  std::function<void(const RequestRecord&)> ended_;
  ScratchFile* scratch_ = nullptr;
  std::uint32_t dropped_ = 0;             // records that are gone
  std::size_t passed_on_ = 0;             // of the others, handed over
  std::vector<GapLedger> ledgers_;        // by place
  std::vector<std::uint64_t> settle_at_;  // log length at which settling is tried next, by place
  bool details_;
  bool by_id_;
  bool keeps_passes_;
  std::vector<PassRecorder> passes_;  // by place
  std::uint64_t terminal_ = 0;
};

}  // namespace dynosim::sim
