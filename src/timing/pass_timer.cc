// SPDX-License-Identifier: Apache-2.0
// Rounding of pass durations: an exact scalar form, and a form for long runs that takes eight
// values at a time and falls back to the exact one whenever a value is near a tie or long.
#include "timing/pass_timer.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/time.h"
#include "timing/model.h"
#include "timing/pair.h"

namespace dynosim::timing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
// Below 2^50 ns the conversion to seconds and back is the identity.
constexpr std::uint64_t kIdentityLimit = std::uint64_t{1} << 50;

// What comparing two pairs gives.
using Mask = std::int64_t __attribute__((vector_size(16)));
constexpr std::size_t kGroup = 8;

// The fast form works for whole nanoseconds below one second. It rounds raw * 1e6 where the exact
// form rounds raw / 1000 * 1e9: the two differ by less than 2^-21 there, so any value that is not
// that close to a tie rounds the same way.
constexpr double kFastLimitNanos = 999'999'999.0;
constexpr double kTieGuard = 0.5 - 1.0 / (1 << 20);

// Nearest integers; clears lanes of `good` that must take the exact form (NaN included).
inline Pair Nearest(Pair value, Mask& good) {
  const Pair nearest = (value + Both(kRoundingBias)) - Both(kRoundingBias);
  const Pair off = value - nearest;
  good &= (value >= Both(0.0)) & (value < Both(kFastLimitNanos));
  good &= (off < Both(kTieGuard)) & (off > Both(-kTieGuard));
  return nearest;
}

// Scales eight values; false when at least one of them needs the exact form.
template <bool kWithRatio>
bool ScaleGroup(double* values, double ratio) {
  Mask good = {-1, -1};
  for (std::size_t i = 0; i < kGroup; i += 2) {
    Pair raw;
    std::memcpy(&raw, values + i, sizeof raw);
    Pair nanos = Nearest(raw * Both(1e6), good);
    if constexpr (kWithRatio) {
      nanos = Nearest(((nanos / Both(1e9)) / Both(ratio)) * Both(1e9), good);
    }
    const Pair scaled = (nanos / Both(1e9)) * Both(1000.0);
    std::memcpy(values + i, &scaled, sizeof scaled);
  }
  return (good[0] & good[1]) != 0;
}

template <bool kWithRatio>
void ScaleRun(std::span<double> values, double ratio) {
  std::size_t i = 0;
  for (; i + kGroup <= values.size(); i += kGroup) {
    double raw[kGroup];
    std::memcpy(raw, values.data() + i, sizeof raw);
    if (!ScaleGroup<kWithRatio>(values.data() + i, ratio)) {
      for (std::size_t k = 0; k < kGroup; ++k) {
        values[i + k] = ScaleMs(raw[k], ratio);
      }
    }
  }
  for (; i < values.size(); ++i) {
    values[i] = ScaleMs(values[i], ratio);
  }
}

}  // namespace

double ScaleMs(double raw_ms, double ratio) {
  std::uint64_t nanos = NanosFromMillis(raw_ms);
  if (nanos == kNoNanos) {
    return kNan;
  }
  if (ratio > 0.0 && nanos > 0 && (ratio != 1.0 || nanos >= kIdentityLimit)) {
    nanos = NanosFromSeconds(SecondsFromNanos(nanos) / ratio);
  }
  if (nanos >= kIdentityLimit) {
    if (nanos != kNoNanos) {
      nanos = NanosFromMillis(MillisFromNanos(nanos));
    }
    if (nanos == kNoNanos) {
      return kNan;
    }
  }
  return MillisFromNanos(nanos);
}

void ScaleRunMs(std::span<double> values, double ratio) {
  if (ratio > 0.0 && ratio != 1.0) {
    ScaleRun<true>(values, ratio);
  } else {
    ScaleRun<false>(values, 1.0);
  }
}

PassTimer::PassTimer(std::shared_ptr<const TimingModel> model, double speedup_ratio,
                     double decode_speedup_ratio)
    : model_(std::move(model)),
      prefill_ratio_(speedup_ratio),
      decode_ratio_(speedup_ratio * decode_speedup_ratio),
      constant_decode_(model_ != nullptr && model_->ConstantDecode()) {
  DYNO_CHECK(model_ != nullptr);
  if (constant_decode_) {
    constant_decode_ms_ =
        ScaleMs(model_->DecodeMs({.requests = 1, .context_tokens = 1, .capacity_tokens = 1}),
                decode_ratio_);
  }
}

double PassTimer::PrefillMs(const PrefillBatch& batch) const {
  if (batch.requests == 0 || batch.mean_new == 0) {
    return 0.0;
  }
  return ScaleMs(model_->PrefillMs(batch), prefill_ratio_);
}

double PassTimer::DecodeMs(const DecodeBatch& batch) const {
  if (batch.requests == 0) {
    return 0.0;
  }
  return constant_decode_ ? constant_decode_ms_ : ScaleMs(model_->DecodeMs(batch), decode_ratio_);
}

void PassTimer::DecodeRunMs(const DecodeBatch& first, std::span<double> out) const {
  if (constant_decode_ || first.requests == 0) {
    const double each = first.requests == 0 ? 0.0 : constant_decode_ms_;
    for (double& value : out) {
      value = each;
    }
    return;
  }
  model_->DecodeRunMs(first, out);
  ScaleRunMs(out, decode_ratio_);
}

}  // namespace dynosim::timing
