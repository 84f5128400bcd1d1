// SPDX-License-Identifier: Apache-2.0
#include "sim/telemetry.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/effects.h"
#include "engine/worker.h"
#include "sim/outcome.h"

namespace dynosim::sim {

namespace {

double Mean(double sum, std::uint64_t count) {
  return count == 0 ? 0.0 : sum / static_cast<double>(count);
}

}  // namespace

void TelemetrySampler::OnCompleted(const RequestRecord& record) {
  fresh_ = true;
  ++completed_;
  isl_sum_ += static_cast<double>(record.prompt_tokens);
  osl_sum_ += static_cast<double>(record.output_tokens);
  if (record.output_tokens >= 1) {
    ttft_sum_ += record.first_token_ms - record.arrival_ms;
    ++ttft_count_;
  }
  if (record.output_tokens >= 2) {
    itl_sum_ += (record.last_token_ms - record.first_token_ms) /
                static_cast<double>(record.output_tokens - 1);
    ++itl_count_;
  }
}

void TelemetrySampler::Observe(const Observed& observed, double now_ms, TelemetrySample& sample,
                               Totals& totals) {
  engine::Worker& worker = *observed.worker;
  const bool prefill = observed.pool == Pool::kPrefill;
  worker.Publish(now_ms);
  for (std::uint32_t rank = 0; rank < worker.ranks(); ++rank) {
    const engine::RankMetrics& m = worker.Published(rank);
    (prefill ? sample.prefill_schedulers : sample.decode_schedulers)
        .push_back({.worker = worker.id(),
                    .dp_rank = rank,
                    .active_blocks = m.active_blocks,
                    .inactive_blocks = m.inactive_blocks,
                    .total_blocks = m.total_blocks,
                    .running_requests = m.running_requests,
                    .waiting_requests = m.waiting_requests});
    totals.preemptions += m.preemptions_total;
    totals.hit_tokens += m.cache_hit_tokens;
    totals.total_tokens += m.cache_total_tokens;
  }
  (prefill ? sample.active_prefill_ids : sample.active_decode_ids).push_back(worker.id());
}

void TelemetrySampler::FillTraffic(TelemetrySample& s) {
  s.arriving_requests = arrivals_;
  s.completed_requests = completed_;
  s.avg_isl = Mean(isl_sum_, completed_);
  s.avg_osl = Mean(osl_sum_, completed_);
  s.avg_ttft_ms = Mean(ttft_sum_, ttft_count_);
  s.avg_itl_ms = Mean(itl_sum_, itl_count_);
  s.ttft_count = ttft_count_;
  s.itl_count = itl_count_;
  s.avg_router_kv_hit_rate = Mean(hit_rate_sum_, hit_rate_count_);
  s.router_kv_hit_rate_count = hit_rate_count_;
  hit_rate_sum_ = 0.0;
  hit_rate_count_ = 0;
  arrivals_ = completed_ = ttft_count_ = itl_count_ = 0;
  isl_sum_ = osl_sum_ = ttft_sum_ = itl_sum_ = 0.0;
  fresh_ = false;
}

void TelemetrySampler::Take(TelemetrySample::Kind kind, double now_ms) {
  TelemetrySample s;
  s.ordinal = samples_.size();
  s.kind = kind;
  s.interval_start_ms = last_ms_;
  s.sampled_at_ms = now_ms;
  s.duration_s = (now_ms - last_ms_) / 1000.0;
  s.router_pending_prefill_requests = pending_prefill_ ? pending_prefill_() : 0;
  s.router_pending_decode_requests = pending_decode_ ? pending_decode_() : 0;
  Totals prefill_totals;
  Totals decode_totals;
  engine::DecodeCounters decode;
  for (const Observed& observed : workers_) {
    Observe(observed, now_ms, s, observed.pool == Pool::kPrefill ? prefill_totals : decode_totals);
    if (observed.pool == Pool::kPrefill) {
      continue;
    }
    decode.forwards += observed.worker->published_decode().forwards;
    decode.tokens += observed.worker->published_decode().tokens;
  }
  if (kind != TelemetrySample::Kind::kBaseline) {
    FillTraffic(s);
    s.accept_length_forward_count = decode.forwards - decode_.forwards;
    if (s.accept_length_forward_count > 0) {
      s.avg_accept_length = static_cast<double>(decode.tokens - decode_.tokens) /
                            static_cast<double>(s.accept_length_forward_count);
    }
    s.prefill_interval = prefill_totals.Since(prefill_totals_);
    s.decode_interval = decode_totals.Since(decode_totals_);
    prefill_totals_ = prefill_totals;
    decode_totals_ = decode_totals;
    decode_ = decode;
  }
  if (kind == TelemetrySample::Kind::kPeriodic) {
    ++ticks_;
  }
  if (kind == TelemetrySample::Kind::kBaseline) {
    baseline_ms_ = now_ms;
  }
  last_ms_ = now_ms;
  samples_.push_back(std::move(s));
  if (sink_ && !stopped_) {
    stopped_ = !sink_(samples_.back());
  }
  if (samples_.size() == samples_max_ && kind == TelemetrySample::Kind::kPeriodic) {
    Thin();
  }
}

void TelemetrySampler::Thin() {
  for (std::size_t i = 1; 2 * i < samples_.size(); ++i) {
    samples_[i] = std::move(samples_[2 * i]);
    samples_[i].ordinal = i;
  }
  samples_.resize((samples_.size() + 1) / 2);
  interval_ms_ *= 2.0;
  ticks_ /= 2;
}

void TelemetrySampler::TakeFinal(double end_ms) {
  if (end_ms > last_ms_ || fresh_) {
    Take(TelemetrySample::Kind::kFinal, end_ms);
  }
}

}  // namespace dynosim::sim
