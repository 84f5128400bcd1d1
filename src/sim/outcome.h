// SPDX-License-Identifier: Apache-2.0
// What one run produced, as values: counters, one record per terminal request, pooled token gaps
// and telemetry samples. The report module turns it into summaries; nothing here is derived twice.
// Times are virtual milliseconds; NaN never occurs; absent values are std::optional.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/long_sequence.h"
#include "router/router.h"
#include "workload/request.h"

namespace dynosim::sim {

enum class Pool : std::uint8_t { kAggregated, kPrefill, kDecode };

// What happens to a request between a prefill and a decode worker, in order.
enum class HandoffStep : std::uint8_t {
  kSourceHeld,
  kDestinationReserved,
  kTransferStarted,
  kDestinationActivated,
  kSourceReleased,
};

// One admission of a request by a scheduler (chapter 50, section 4, admission_history).
struct AdmissionRecord {
  Pool pool = Pool::kAggregated;
  double at_ms = 0.0;
  std::uint64_t reused_tokens = 0;
};

// One placement decision (routing_history). Overlap fields are absent for round robin.
struct RoutingRecord {
  Pool pool = Pool::kAggregated;
  bool queued = false;
  double queue_entered_at_ms = 0.0;  // only when queued
  double released_at_ms = 0.0;       // only when queued
  std::uint32_t worker = 0;
  std::uint32_t scheduler = 0;  // worker * dp_size + rank
  std::uint32_t dp_rank = 0;
  std::uint64_t reported_overlap_tokens = 0;
  std::optional<std::uint64_t> selected_overlap_blocks{};
  std::optional<std::uint64_t> best_available_overlap_blocks{};
  std::vector<router::Candidate> candidates{};  // only when captured
};

// Parts of a record that only per-request reports need; empty unless capture is on.
struct RequestDetail {
  std::vector<RoutingRecord> routing;
  std::vector<AdmissionRecord> admissions;
  std::string rejection_reason;
  // Disaggregated runs only.
  std::optional<double> prefill_admit_ms{}, source_held_ms{}, destination_reserved_ms{},
      destination_activated_ms{}, decode_admit_ms{}, source_released_ms{};
  std::optional<double> transfer_start_ms{}, transfer_end_ms{};  // the KV moves
  std::optional<std::uint32_t> prefill_scheduler{};
  std::optional<std::uint64_t> decode_reused_tokens{};
  std::optional<std::uint64_t> prefill_route_overlap_tokens{}, decode_route_overlap_tokens{};
};

// One request that arrived during the run.
struct RequestRecord {
  std::uint32_t id = 0;  // authored order
  std::uint32_t session = workload::kNone;
  std::uint32_t turn = workload::kNone;
  bool terminal = false;  // false: still unfinished when the run ended; no report row
  workload::TerminalStatus status = workload::TerminalStatus::kCompleted;
  double arrival_ms = 0.0;
  double dispatched_ms = 0.0;  // agentic graphs: time it was handed to the router
  std::optional<double> first_admit_ms{};
  double terminal_ms = 0.0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t requested_output_tokens = 0;
  std::uint64_t output_tokens = 0;        // emitted tokens that count
  double first_token_ms = 0.0;            // output_tokens >= 1
  double second_token_ms = 0.0;           // output_tokens >= 2
  double last_token_ms = 0.0;             // output_tokens >= 1
  std::uint64_t reused_tokens_max = 0;    // largest reuse over all admissions in any pool
  std::uint64_t reused_tokens_first = 0;  // first admission (prefill admission when disaggregated)
  std::uint64_t reused_tokens_prefill_max = 0;  // over aggregated or prefill admissions only
  std::uint64_t readmission_reused_tokens = 0;  // sum over admissions after the first of a pool
  std::uint32_t admissions = 0;                 // in all pools
  std::uint32_t decode_admissions = 0;          // of these, in a decode pool
  std::uint32_t readmissions = 0;
  std::optional<std::uint32_t> decode_scheduler{};  // aggregated: the rank that served it
};

// Gaps between consecutive tokens of one request, pooled over all completed requests: `weight`
// requests saw the gap `gap_ms`. Order is fixed: worker by worker, pass by pass, then the rest.
struct [[gnu::packed]] GapSample {  // 12 bytes: a long run holds millions
  double gap_ms = 0.0;
  std::uint32_t weight = 0;
};

struct SchedulerSample {
  std::uint32_t worker = 0;
  std::uint32_t dp_rank = 0;
  std::uint64_t active_blocks = 0;
  std::uint64_t inactive_blocks = 0;
  std::uint64_t total_blocks = 0;
  std::uint64_t running_requests = 0;
  std::uint64_t waiting_requests = 0;
};

struct IntervalSample {
  std::uint64_t cache_hit_tokens = 0;
  std::uint64_t cache_total_tokens = 0;
  std::uint64_t preemptions = 0;
};

// One pass of a worker.
struct PassRecord {
  Pool pool = Pool::kAggregated;
  std::uint32_t worker = 0;  // in its pool
  double start_ms = 0.0;
  double end_ms = 0.0;
  std::uint64_t prefill_tokens = 0;  // prompt tokens computed
  std::uint32_t requests = 0;  // completed requests that got tokens; no thrown-away prefill tokens
};

// One telemetry sample (chapter 50, section 6).
struct TelemetrySample {
  enum class Kind : std::uint8_t { kBaseline, kPeriodic, kFinal };
  std::uint64_t ordinal = 0;
  Kind kind = Kind::kBaseline;
  double interval_start_ms = 0.0;
  double sampled_at_ms = 0.0;
  double duration_s = 0.0;
  std::uint64_t arriving_requests = 0;
  std::uint64_t completed_requests = 0;
  double avg_isl = 0.0, avg_osl = 0.0, avg_ttft_ms = 0.0, avg_itl_ms = 0.0;
  std::uint64_t ttft_count = 0, itl_count = 0;
  double avg_router_kv_hit_rate = 0.0;
  std::uint64_t router_kv_hit_rate_count = 0;
  std::optional<double> avg_accept_length{};
  std::uint64_t accept_length_forward_count = 0;
  std::vector<SchedulerSample> prefill_schedulers, decode_schedulers;
  IntervalSample prefill_interval, decode_interval;
  std::uint64_t router_pending_prefill_requests = 0, router_pending_decode_requests = 0;
  std::vector<std::uint32_t> active_prefill_ids, active_decode_ids, starting_prefill_ids,
      starting_decode_ids, draining_prefill_ids, draining_decode_ids;
};

// The whole result of a run.
struct Outcome {
  std::vector<RequestRecord> records;  // every request that arrived, by (arrival, authored order)
  std::vector<RequestDetail> details;  // parallel to records when details were captured, else empty
  std::string first_rejection_reason;  // empty when nothing was rejected
  std::vector<GapSample> gaps;         // pooled positive gaps of completed requests
  // The same where they may lie in a scratch file: `gaps` is the parts one after the other, and
  // stays empty.
  std::vector<LongSequence<GapSample>> long_gaps;
  std::uint64_t zero_gaps = 0;  // pooled gaps of exactly zero
  std::uint64_t committed_prefill_tokens = 0;
  double prefill_worker_seconds = 0.0;
  double decode_worker_seconds = 0.0;
  std::uint64_t prefill_gpus_per_worker = 0;
  std::uint64_t decode_gpus_per_worker = 0;
  std::uint64_t forward_passes = 0;
  std::uint64_t preemptions = 0;
  // Decisions taken from an earlier report; of these, how many the router could not have made.
  std::uint64_t placements_forced = 0;
  std::uint64_t placements_outside_minimum = 0;
  double end_ms = 0.0;             // time of the last processed event
  std::vector<PassRecord> passes;  // worker by worker; only when a timeline was asked for
  std::vector<TelemetrySample> telemetry;
};

}  // namespace dynosim::sim
