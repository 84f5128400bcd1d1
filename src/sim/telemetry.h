// SPDX-License-Identifier: Apache-2.0
// TelemetrySampler: periodic samples of a run in virtual time (chapter 50, section 6). Interval
// sums are kept from sample to sample; the baseline does not consume them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "engine/worker.h"
#include "sim/outcome.h"

namespace dynosim::sim {

class TelemetrySampler {
 public:
  // `samples_max`: when there are so many samples, every second one is dropped, with its interval
  // sums, and the interval doubles; 0: never. Odd, so that the last sample stays.
  explicit TelemetrySampler(double interval_ms, std::size_t samples_max = 0)
      : interval_ms_(interval_ms), samples_max_(samples_max) {}

  // The sampler looks at workers in the order of their addition; they outlive it.
  void AddWorker(engine::Worker& worker, Pool pool) { workers_.push_back({&worker, pool}); }

  void OnArrival() {
    ++arrivals_;
    fresh_ = true;
  }
  void OnCompleted(const RequestRecord& record);
  void OnOtherTerminal() { fresh_ = true; }
  // A router that looks at caches has placed a request; `hit_rate` is the share of its prompt that
  // the target holds.
  void OnRouted(double hit_rate) {
    hit_rate_sum_ += hit_rate;
    ++hit_rate_count_;
    fresh_ = true;
  }
  // How many requests wait in the router's queue of a pool.
  void SetPending(Pool pool, std::function<std::uint64_t()> pending) {
    (pool == Pool::kPrefill ? pending_prefill_ : pending_decode_) = std::move(pending);
  }

  // Time of the next periodic sample: baseline + k * interval.
  double NextMs() const { return baseline_ms_ + static_cast<double>(ticks_ + 1) * interval_ms_; }

  // Takes a sample; a periodic one arms the next.
  void Take(TelemetrySample::Kind kind, double now_ms);
  // The last sample of the run, if time has passed or something happened since the one before.
  void TakeFinal(double end_ms);

  std::vector<TelemetrySample>& samples() { return samples_; }

  // `sink` is given each sample when it is taken, until it returns false.
  void SetSink(std::function<bool(const TelemetrySample&)> sink) { sink_ = std::move(sink); }
  // The sink wants the run to end.
  bool stopped() const { return stopped_; }

 private:
  struct Observed {
    engine::Worker* worker;
    Pool pool;
  };
  // Cumulative counters of one role.
  struct Totals {
    std::uint64_t preemptions = 0, hit_tokens = 0, total_tokens = 0;
    IntervalSample Since(const Totals& before) const {
      return {.cache_hit_tokens = hit_tokens - before.hit_tokens,
              .cache_total_tokens = total_tokens - before.total_tokens,
              .preemptions = preemptions - before.preemptions};
    }
  };
  void Observe(const Observed& observed, double now_ms, TelemetrySample& sample, Totals& totals);
  void FillTraffic(TelemetrySample& sample);
  void Thin();

  std::vector<Observed> workers_;
  double interval_ms_;
  std::size_t samples_max_;
  double baseline_ms_ = 0.0;
  double last_ms_ = 0.0;
  std::uint64_t ticks_ = 0;
  bool fresh_ = false;  // something happened since the last sample
  std::uint64_t arrivals_ = 0;
  std::uint64_t completed_ = 0;
  double isl_sum_ = 0.0, osl_sum_ = 0.0, ttft_sum_ = 0.0, itl_sum_ = 0.0;
  std::uint64_t ttft_count_ = 0, itl_count_ = 0;
  double hit_rate_sum_ = 0.0;
  std::uint64_t hit_rate_count_ = 0;
  std::function<std::uint64_t()> pending_prefill_, pending_decode_;
  std::function<bool(const TelemetrySample&)> sink_;
  bool stopped_ = false;
  // Totals at the last sample that consumed them.
  Totals prefill_totals_, decode_totals_;
  engine::DecodeCounters decode_;
  std::vector<TelemetrySample> samples_;
};

}  // namespace dynosim::sim
