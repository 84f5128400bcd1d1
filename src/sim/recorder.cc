// SPDX-License-Identifier: Apache-2.0
#include "sim/recorder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/scratch_file.h"
#include "engine/effects.h"
#include "engine/pass_log.h"
#include "engine/worker.h"
#include "sim/outcome.h"
#include "workload/request.h"

namespace dynosim::sim {

namespace {

// Passes that a worker may log before the settled ones are folded away.
constexpr std::uint64_t kSettlePasses = 16384;

double SecondTokenMs(const engine::TokenTrack& track, const engine::PassLog& log) {
  const engine::PassSpan& span = track.spans.front();
  if (track.first_burst >= 2) {
    return log.EndMs(span.first);
  }
  if (span.last > span.first) {
    return log.EndMs(span.first + 1);
  }
  return log.EndMs(track.spans[1].first);
}

}  // namespace

Recorder::Recorder(std::uint32_t requests, bool details, bool by_id, bool passes)
    : index_(requests, workload::kNone), details_(details), by_id_(by_id), keeps_passes_(passes) {
  outcome_.records.reserve(requests);
}

void Recorder::set_ended(std::function<void(const RequestRecord&)> ended, ScratchFile* scratch) {
  ended_ = std::move(ended);
  scratch_ = scratch;
  std::vector<RequestRecord>().swap(outcome_.records);
  std::vector<std::uint32_t>().swap(index_);
}

void Recorder::PassOnEnded() {
  constexpr std::size_t kDropMin = 1024;
  if (!ended_) {
    return;
  }
  std::vector<RequestRecord>& records = outcome_.records;
  while (passed_on_ < records.size() && records[passed_on_].terminal) {
    ended_(records[passed_on_++]);
  }
  if (passed_on_ >= kDropMin && passed_on_ * 2 >= records.size()) {
    records.erase(records.begin(), records.begin() + static_cast<std::ptrdiff_t>(passed_on_));
    dropped_ += static_cast<std::uint32_t>(passed_on_);
    passed_on_ = 0;
  }
}

void Recorder::AddWorker(Pool pool, std::uint32_t id) {
  if (keeps_passes_) {
    passes_.emplace_back(pool, id);
  }
  ledgers_.emplace_back(scratch_);
  settle_at_.push_back(kSettlePasses);
}

void Recorder::OnArrival(const workload::Request& request) {
  if (ended_) {
    DYNO_CHECK(request.id == arrived());
  } else {
    index_[request.id] = static_cast<std::uint32_t>(arrived());
  }
  outcome_.records.push_back({.id = request.id,
                              .session = request.session,
                              .turn = request.turn,
                              .arrival_ms = request.arrival_ms,
                              .dispatched_ms = request.arrival_ms,
                              .prompt_tokens = request.prompt_tokens,
                              .requested_output_tokens = request.output_tokens});
  if (details_) {
    outcome_.details.emplace_back();
  }
}

void Recorder::OnRouted(std::uint32_t id, RoutingRecord routing) {
  if (routing.pool == Pool::kAggregated) {
    record(id).decode_scheduler = routing.scheduler;
  }
  RequestDetail* d = detail(id);
  if (d == nullptr) {
    return;
  }
  const std::uint64_t overlap = std::min(routing.reported_overlap_tokens, record(id).prompt_tokens);
  if (routing.pool == Pool::kPrefill) {
    d->prefill_scheduler = routing.scheduler;
    d->prefill_route_overlap_tokens = overlap;
  } else if (routing.pool == Pool::kDecode) {
    d->decode_route_overlap_tokens = overlap;
  }
  d->routing.push_back(std::move(routing));
}

void Recorder::OnAdmitted(std::uint32_t id, Pool pool, double at_ms, std::uint64_t reused_tokens) {
  RequestRecord& r = record(id);
  const bool decode = pool == Pool::kDecode;
  const bool again = (decode ? r.decode_admissions : r.admissions - r.decode_admissions) > 0;
  if (r.admissions == 0) {
    r.first_admit_ms = at_ms;
  }
  if (again) {
    ++r.readmissions;
    r.readmission_reused_tokens += reused_tokens;
  } else if (!decode) {
    r.reused_tokens_first = reused_tokens;
  }
  ++r.admissions;
  r.decode_admissions += decode ? 1 : 0;
  r.reused_tokens_max = std::max(r.reused_tokens_max, reused_tokens);
  if (!decode) {
    r.reused_tokens_prefill_max = std::max(r.reused_tokens_prefill_max, reused_tokens);
  }
  RequestDetail* d = detail(id);
  if (d == nullptr) {
    return;
  }
  d->admissions.push_back({pool, at_ms, reused_tokens});
  if (pool == Pool::kPrefill && !again) {
    d->prefill_admit_ms = at_ms;
  }
  if (!decode) {
    return;
  }
  if (!again) {
    d->decode_admit_ms = at_ms;
  }
  d->decode_reused_tokens = std::max(d->decode_reused_tokens.value_or(0), reused_tokens);
}

void Recorder::OnCompleted(std::uint32_t id, double now_ms, const engine::TokenTrack& track,
                           std::uint32_t place, const engine::Worker& worker) {
  RequestRecord& r = record(id);
  r.terminal = true;
  r.status = workload::TerminalStatus::kCompleted;
  r.terminal_ms = now_ms;
  r.output_tokens = track.tokens;
  ++terminal_;
  if (track.tokens == 0) {
    return;
  }
  const engine::PassLog& log = worker.log();
  r.first_token_ms = log.EndMs(track.spans.front().first);
  r.last_token_ms = log.EndMs(track.spans.back().last);
  if (track.tokens >= 2) {
    r.second_token_ms = SecondTokenMs(track, log);
  }
  ledgers_[place].Add(track, log);
  if (keeps_passes_) {
    passes_[place].OnCompleted(track);
  }
}

void Recorder::OnHandoffStep(HandoffStep step, std::uint32_t id, double now_ms, double until_ms) {
  RequestDetail* d = detail(id);
  if (d == nullptr) {
    return;
  }
  switch (step) {
    case HandoffStep::kSourceHeld:
      d->source_held_ms = now_ms;
      return;
    case HandoffStep::kDestinationReserved:
      d->destination_reserved_ms = now_ms;
      return;
    case HandoffStep::kTransferStarted:
      d->transfer_start_ms = now_ms;
      d->transfer_end_ms = until_ms;
      return;
    case HandoffStep::kDestinationActivated:
      d->destination_activated_ms = now_ms;
      return;
    case HandoffStep::kSourceReleased:
      d->source_released_ms = now_ms;
      return;
  }
}

void Recorder::OnRejected(std::uint32_t id, double now_ms, const engine::Rejection& rejection,
                          workload::TerminalStatus status) {
  RequestRecord& r = record(id);
  r.terminal = true;
  r.status = status;
  r.terminal_ms = now_ms;
  ++terminal_;
  if (outcome_.first_rejection_reason.empty()) {
    outcome_.first_rejection_reason = rejection.Text();
  }
  if (RequestDetail* d = detail(id)) {
    d->rejection_reason = rejection.Text();
  }
}

void Recorder::MaybeSettle(std::uint32_t place, engine::Worker& worker) {
  std::uint64_t& at = settle_at_[place];
  if (worker.log().size() < at) {
    return;
  }
  const std::uint64_t settled = std::min(worker.OldestLivePass(), worker.passes());
  if (keeps_passes_) {
    passes_[place].Settle(settled, worker.log());
  }
  ledgers_[place].Settle(settled, worker.log());
  // A request that lives long keeps its passes; looking again costs a walk over all held requests.
  at = worker.log().size() + kSettlePasses;
}

void Recorder::Settle(std::uint32_t place, engine::Worker& worker) {
  if (keeps_passes_) {
    passes_[place].Settle(worker.log().last() + 1, worker.log());
  }
  ledgers_[place].Settle(worker.log().last() + 1, worker.log());
  outcome_.forward_passes += worker.passes();
  outcome_.preemptions += worker.Preemptions();
}

Outcome Recorder::Take(double end_ms) {
  outcome_.end_ms = end_ms;
  for (PassRecorder& passes : passes_) {
    passes.MoveTo(outcome_.passes, end_ms);
  }
  TakeGaps();
  OrderRecords();
  return std::move(outcome_);
}

void Recorder::TakeGaps() {
  // Room for all samples at once, and each ledger is freed as soon as it is copied: gaps are the
  // largest thing that a long run holds.
  std::size_t samples = 0;
  for (const GapLedger& ledger : ledgers_) {
    samples += ledger.size();
    outcome_.zero_gaps += ledger.zero_gaps();
  }
  if (scratch_ == nullptr) {
    outcome_.gaps.reserve(samples);
  }
  for (GapLedger& ledger : ledgers_) {
    if (scratch_ != nullptr) {
      ledger.MoveTo(outcome_.long_gaps);
    } else {
      ledger.MoveTo(outcome_.gaps);
    }
  }
}

void Recorder::OrderRecords() {
  if (ended_) {
    for (; passed_on_ < outcome_.records.size(); ++passed_on_) {
      ended_(outcome_.records[passed_on_]);
    }
    outcome_.records.clear();
    return;
  }
  const auto before = [by_id = by_id_](const RequestRecord& a, const RequestRecord& b) {
    return !by_id && a.arrival_ms != b.arrival_ms ? a.arrival_ms < b.arrival_ms : a.id < b.id;
  };
  if (std::ranges::is_sorted(outcome_.records, before)) {
    return;
  }
  if (!details_) {
    std::ranges::sort(outcome_.records, before);
    return;
  }
  std::vector<std::size_t> order(outcome_.records.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return before(outcome_.records[a], outcome_.records[b]);
  });
  std::vector<RequestRecord> records;
  std::vector<RequestDetail> details;
  records.reserve(order.size());
  details.reserve(order.size());
  for (const std::size_t i : order) {
    records.push_back(outcome_.records[i]);
    details.push_back(std::move(outcome_.details[i]));
  }
  outcome_.records = std::move(records);
  outcome_.details = std::move(details);
}

}  // namespace dynosim::sim
