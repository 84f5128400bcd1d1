// SPDX-License-Identifier: Apache-2.0
// The summary of one run: totals, rates, goodput and latency distributions (chapter 50, 2, 3, 5).
// Derived from an Outcome alone; only the fields of RunTimes differ between two runs of one input.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/long_sequence.h"
#include "base/scratch_file.h"
#include "report/agentic.h"
#include "report/quantiles.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"

namespace dynosim::report {

// Real time, measured by the caller: construction and execution of the run.
struct RunTimes {
  double wall_time_ms = 0.0;
};

struct GoodputSummary {
  std::uint64_t completed_requests = 0;
  double request_throughput_rps = 0.0;
  double output_throughput_tok_s = 0.0;
};

struct Summary {
  std::uint64_t committed_prefill_tokens = 0;
  std::uint64_t num_requests = 0;        // arrived
  std::uint64_t completed_requests = 0;  // admitted and completed; all totals below are over these
  std::uint64_t rejected_requests = 0;   // rejected or failed
  std::uint64_t total_input_tokens = 0;
  std::uint64_t total_output_tokens = 0;
  double duration_ms = 0.0;
  double wall_time_ms = 0.0;
  double request_throughput_rps = 0.0;
  double input_throughput_tok_s = 0.0;
  double output_throughput_tok_s = 0.0;
  double total_throughput_tok_s = 0.0;
  double prefill_worker_seconds = 0.0;
  double decode_worker_seconds = 0.0;
  std::uint64_t prefill_gpus_per_worker = 0;
  std::uint64_t decode_gpus_per_worker = 0;
  double gpu_hours = 0.0;
  std::optional<GoodputSummary> goodput;  // only with latency bounds
  std::uint64_t processed_tokens = 0;
  double processed_tokens_per_s = 0.0;         // of real time
  double processed_output_tokens_per_s = 0.0;  // of real time
  double prefix_cache_reused_ratio = 0.0;
  double first_admission_prefix_cache_reused_ratio = 0.0;
  std::uint64_t readmission_reused_tokens = 0;
  struct Forced {
    std::uint64_t placements = 0;
    std::uint64_t outside_minimum = 0;
  };
  std::optional<Forced> forced{};  // only with placements of an earlier report
  Distribution ttft_ms;
  Distribution ttst_ms;
  Distribution tpot_ms;
  Distribution e2e_latency_ms;
  GapStatistics gaps;
  std::optional<AgenticSummary> agentic{};  // only for agentic graphs
  std::string first_rejection_reason;       // for the table; not a key of the report
};

// Adds records up to a summary, so that they need not be kept: 32 bytes of samples stay of each,
// in `scratch` if there is one, else in memory.
class Summarizer {
 public:
  explicit Summarizer(const scenario::Goodput& bounds, ScratchFile* scratch = nullptr)
      : bounds_(bounds),
        ttft_ms_(scratch),
        ttst_ms_(scratch),
        tpot_ms_(scratch),
        e2e_ms_(scratch) {}

  // All requests that arrived, in the order of Outcome::records.
  void Add(const sim::RequestRecord& record);
  // `outcome`: the rest of the run.
  Summary Finish(const sim::Outcome& outcome, const scenario::Scenario& scenario,
                 const RunTimes& times);

 private:
  scenario::Goodput bounds_;
  Summary sums_;
  LongSequence<double> ttft_ms_, ttst_ms_, tpot_ms_, e2e_ms_;
  std::uint64_t reused_tokens_ = 0;
  std::uint64_t reused_tokens_first_ = 0;
  std::uint64_t good_requests_ = 0;
  std::uint64_t good_tokens_ = 0;
};

Summary Summarize(const sim::Outcome& outcome, const scenario::Scenario& scenario,
                  const RunTimes& times);

// The summary keys in the order of chapter 50, section 3; `runtime` (the wall-clock fields again)
// is the last member.
Json SummaryJson(const Summary& summary);

}  // namespace dynosim::report
