// SPDX-License-Identifier: Apache-2.0
// TimingModel: how long the prefill part and the decode part of one forward pass take, before
// speed-up and rounding (timing/pass_timer.h). Answers are raw milliseconds.
#pragma once

#include <cstdint>
#include <span>

namespace dynosim::timing {

// Aggregate of the prefill work of one pass. Means are integer floors, as the reference forms them.
struct PrefillBatch {
  std::uint64_t requests = 0;     // > 0
  std::uint64_t mean_new = 0;     // floor(mean total length) - floor(mean prefix), > 0
  std::uint64_t mean_prefix = 0;  // tokens already computed or cached
};

// Aggregate of the decode work of one pass.
struct DecodeBatch {
  std::uint64_t requests = 0;         // > 0
  std::uint64_t context_tokens = 0;   // sum of context lengths before the new token
  std::uint64_t capacity_tokens = 0;  // KV pool of the rank in tokens
};

class TimingModel {
 public:
  TimingModel() = default;
  TimingModel(const TimingModel&) = delete;
  TimingModel& operator=(const TimingModel&) = delete;
  virtual ~TimingModel() = default;

  virtual double PrefillMs(const PrefillBatch& batch) const = 0;
  virtual double DecodeMs(const DecodeBatch& batch) const = 0;

  // DecodeMs of out.size() consecutive passes of a batch whose every request grows by one token a
  // pass: out[i] = DecodeMs({requests, context_tokens + i * requests, capacity}). One virtual call
  // for a whole steady run.
  virtual void DecodeRunMs(const DecodeBatch& first, std::span<double> out) const = 0;

  // True when every decode pass takes the same raw time (lets callers skip per-pass work).
  virtual bool ConstantDecode() const { return false; }
};

}  // namespace dynosim::timing
