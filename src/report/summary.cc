// SPDX-License-Identifier: Apache-2.0
// Totals are summed over the completed requests in the order of Outcome::records.
#include "report/summary.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/long_sequence.h"
#include "report/agentic.h"
#include "report/latency.h"
#include "report/quantiles.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "workload/request.h"

namespace dynosim::report {
namespace {

constexpr double kMsPerSecond = 1000.0;
constexpr double kSecondsPerHour = 3600.0;
constexpr double kLeastSeconds = 1e-9;  // rates of a run without duration stay finite

double Rate(std::uint64_t count, double seconds) { return static_cast<double>(count) / seconds; }

double Ratio(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

bool Within(const std::optional<double>& bound, double value) { return !bound || value <= *bound; }

bool IsGood(const sim::RequestRecord& record, const scenario::Goodput& bounds) {
  const auto ttft = TtftMs(record);
  const auto e2e = EndToEndMs(record);
  if (!ttft || !e2e) {
    return !bounds.ttft_ms && !bounds.itl_ms &&
           Within(bounds.e2e_ms, ElapsedMs(record.arrival_ms, record.terminal_ms));
  }
  if (!Within(bounds.ttft_ms, *ttft) || !Within(bounds.e2e_ms, *e2e)) {
    return false;
  }
  return record.output_tokens < 2 ||
         Within(bounds.itl_ms, (*e2e - *ttft) / static_cast<double>(record.output_tokens - 1));
}

void Push(LongSequence<double>& values, const std::optional<double>& value) {
  if (value) {
    values.Append(*value);
  }
}

// The percentiles of the samples, which are freed.
Distribution Distill(LongSequence<double>& values) {
  const Distribution distribution = Describe(values);
  values.Clear();
  return distribution;
}

void SetRates(Summary& out, double seconds) {
  out.request_throughput_rps = Rate(out.completed_requests, seconds);
  out.input_throughput_tok_s = Rate(out.total_input_tokens, seconds);
  out.output_throughput_tok_s = Rate(out.total_output_tokens, seconds);
  out.processed_tokens = out.total_input_tokens + out.total_output_tokens;
  out.total_throughput_tok_s = Rate(out.processed_tokens, seconds);
  if (out.wall_time_ms > 0.0) {
    out.processed_tokens_per_s =
        static_cast<double>(out.processed_tokens) / out.wall_time_ms * kMsPerSecond;
    out.processed_output_tokens_per_s =
        static_cast<double>(out.total_output_tokens) / out.wall_time_ms * kMsPerSecond;
  }
}

void SetResources(const sim::Outcome& outcome, Summary& out) {
  out.prefill_worker_seconds = outcome.prefill_worker_seconds;
  out.decode_worker_seconds = outcome.decode_worker_seconds;
  out.prefill_gpus_per_worker = outcome.prefill_gpus_per_worker;
  out.decode_gpus_per_worker = outcome.decode_gpus_per_worker;
  out.gpu_hours = (out.prefill_worker_seconds * static_cast<double>(out.prefill_gpus_per_worker) +
                   out.decode_worker_seconds * static_cast<double>(out.decode_gpus_per_worker)) /
                  kSecondsPerHour;
}

void AddDistribution(Json& json, std::string_view name, const Distribution& values) {
  const auto add = [&](std::string_view prefix, double value) {
    std::string key(prefix);
    key += name;
    json.Add(std::move(key), value);
  };
  add("mean_", values.mean);
  add("min_", values.min);
  add("max_", values.max);
  add("median_", values.median);
  add("p75_", values.p75);
  add("p90_", values.p90);
  add("p95_", values.p95);
  add("p99_", values.p99);
  add("std_", values.deviation);
}

void AddTotals(Json& json, const Summary& summary) {
  json.Add("kv_eviction_policy", "lru");
  json.Add("committed_prefill_tokens", summary.committed_prefill_tokens);
  json.Add("num_requests", summary.num_requests);
  json.Add("completed_requests", summary.completed_requests);
  json.Add("rejected_requests", summary.rejected_requests);
  json.Add("total_input_tokens", summary.total_input_tokens);
  json.Add("total_output_tokens", summary.total_output_tokens);
  json.Add("duration_ms", summary.duration_ms);
  json.Add("wall_time_ms", summary.wall_time_ms);
  json.Add("request_throughput_rps", summary.request_throughput_rps);
  json.Add("input_throughput_tok_s", summary.input_throughput_tok_s);
  json.Add("output_throughput_tok_s", summary.output_throughput_tok_s);
  json.Add("total_throughput_tok_s", summary.total_throughput_tok_s);
  json.Add("prefill_worker_seconds", summary.prefill_worker_seconds);
  json.Add("decode_worker_seconds", summary.decode_worker_seconds);
  json.Add("prefill_gpus_per_worker", summary.prefill_gpus_per_worker);
  json.Add("decode_gpus_per_worker", summary.decode_gpus_per_worker);
  json.Add("gpu_hours", summary.gpu_hours);
  if (summary.goodput) {
    json.Add("goodput_completed_requests", summary.goodput->completed_requests);
    json.Add("goodput_request_throughput_rps", summary.goodput->request_throughput_rps);
    json.Add("goodput_output_throughput_tok_s", summary.goodput->output_throughput_tok_s);
  }
  json.Add("power_w", nullptr);
  json.Add("power_coverage", nullptr);
  json.Add("processed_tokens", summary.processed_tokens);
  json.Add("processed_tokens_per_s", summary.processed_tokens_per_s);
  json.Add("processed_output_tokens_per_s", summary.processed_output_tokens_per_s);
  json.Add("prefix_cache_reused_ratio", summary.prefix_cache_reused_ratio);
  json.Add("first_admission_prefix_cache_reused_ratio",
           summary.first_admission_prefix_cache_reused_ratio);
  json.Add("readmission_reused_tokens", summary.readmission_reused_tokens);
  if (summary.forced) {
    json.Add("placements_forced", summary.forced->placements);
    json.Add("placements_outside_minimum", summary.forced->outside_minimum);
  }
}

void AddAgentic(Json& json, const AgenticSummary& agentic) {
  json.Add("total_trajectories", agentic.total_trajectories);
  json.Add("completed_trajectories", agentic.completed_trajectories);
  json.Add("incomplete_trajectories", agentic.total_trajectories - agentic.completed_trajectories);
  AddDistribution(json, "trajectory_e2e_latency_ms", agentic.trajectory_e2e_latency_ms);
  json.Add("p50_trajectory_e2e_latency_ms", agentic.trajectory_e2e_latency_ms.median);
  for (const Json::Member& member : agentic.details.object()) {
    json.Add(member.first, member.second);
  }
}

}  // namespace

void Summarizer::Add(const sim::RequestRecord& record) {
  ++sums_.num_requests;
  if (record.terminal && (record.status == workload::TerminalStatus::kRejected ||
                          record.status == workload::TerminalStatus::kFailed)) {
    ++sums_.rejected_requests;
  }
  if (!IsCompleted(record)) {
    return;
  }
  ++sums_.completed_requests;
  sums_.total_input_tokens += record.prompt_tokens;
  sums_.total_output_tokens += record.output_tokens;
  sums_.readmission_reused_tokens += record.readmission_reused_tokens;
  sums_.duration_ms = std::max(sums_.duration_ms, record.terminal_ms);
  Push(ttft_ms_, TtftMs(record));
  Push(ttst_ms_, TtstMs(record));
  Push(tpot_ms_, TpotMs(record));
  Push(e2e_ms_, EndToEndMs(record));
  reused_tokens_ += record.reused_tokens_max;
  reused_tokens_first_ += record.reused_tokens_first;
  if (bounds_.any() && IsGood(record, bounds_)) {
    ++good_requests_;
    good_tokens_ += record.output_tokens;
  }
}

Summary Summarizer::Finish(const sim::Outcome& outcome, const scenario::Scenario& scenario,
                           const RunTimes& times) {
  Summary out = sums_;
  out.committed_prefill_tokens = outcome.committed_prefill_tokens;
  out.wall_time_ms = times.wall_time_ms;
  out.first_rejection_reason = outcome.first_rejection_reason;
  if (scenario.placements) {
    out.forced = Summary::Forced{.placements = outcome.placements_forced,
                                 .outside_minimum = outcome.placements_outside_minimum};
  }
  const double seconds = std::max(out.duration_ms / kMsPerSecond, kLeastSeconds);
  SetRates(out, seconds);
  SetResources(outcome, out);
  if (bounds_.any()) {
    out.goodput = GoodputSummary{
        .completed_requests = good_requests_,
        .request_throughput_rps = Rate(good_requests_, seconds),
        .output_throughput_tok_s = Rate(good_tokens_, seconds),
    };
  }
  out.prefix_cache_reused_ratio = Ratio(reused_tokens_, out.total_input_tokens);
  out.first_admission_prefix_cache_reused_ratio =
      Ratio(reused_tokens_first_, out.total_input_tokens);
  out.ttft_ms = Distill(ttft_ms_);
  out.ttst_ms = Distill(ttst_ms_);
  out.tpot_ms = Distill(tpot_ms_);
  out.e2e_latency_ms = Distill(e2e_ms_);
  out.gaps = outcome.long_gaps.empty() ? DescribeGaps(outcome.gaps, outcome.zero_gaps)
                                       : DescribeGaps(outcome.long_gaps, outcome.zero_gaps);
  return out;
}

Summary Summarize(const sim::Outcome& outcome, const scenario::Scenario& scenario,
                  const RunTimes& times) {
  Summarizer summarizer(scenario.goodput);
  for (const sim::RequestRecord& record : outcome.records) {
    summarizer.Add(record);
  }
  return summarizer.Finish(outcome, scenario, times);
}

Json SummaryJson(const Summary& summary) {
  Json json;
  AddTotals(json, summary);
  json.Add("num_ttft_samples", summary.ttft_ms.samples);
  json.Add("num_tpot_samples", summary.tpot_ms.samples);
  json.Add("num_e2e_latency_samples", summary.e2e_latency_ms.samples);
  AddDistribution(json, "ttft_ms", summary.ttft_ms);
  AddDistribution(json, "ttst_ms", summary.ttst_ms);
  AddDistribution(json, "tpot_ms", summary.tpot_ms);
  AddDistribution(json, "itl_ms", summary.gaps.gap_ms);
  if (summary.agentic) {
    AddAgentic(json, *summary.agentic);
  }
  AddDistribution(json, "e2e_latency_ms", summary.e2e_latency_ms);
  AddDistribution(json, "output_token_throughput_per_user", summary.gaps.tokens_per_second);
  json.Add("itl_percentile_method", summary.gaps.exact ? "exact" : "sketch");
  Json runtime;
  runtime.Add("wall_time_ms", summary.wall_time_ms);
  runtime.Add("processed_tokens_per_s", summary.processed_tokens_per_s);
  runtime.Add("processed_output_tokens_per_s", summary.processed_output_tokens_per_s);
  json.Add("runtime", std::move(runtime));
  return json;
}

}  // namespace dynosim::report
