// SPDX-License-Identifier: Apache-2.0
// PassTimer: durations of the two parts of a forward pass in virtual milliseconds. It asks a
// TimingModel for raw milliseconds, divides by the speed-up and rounds to whole nanoseconds as
// often as the reference does. A raw answer that is negative, not finite or over 146 years gives
// NaN, which the caller turns into an error. Immutable; one may serve all ranks.
#pragma once

#include <memory>
#include <span>

#include "timing/model.h"

namespace dynosim::timing {

class PassTimer {
 public:
  // A ratio of 0 means "no scaling".
  PassTimer(std::shared_ptr<const TimingModel> model, double speedup_ratio,
            double decode_speedup_ratio);

  // 0 when there is nothing to compute (no requests or no new tokens).
  double PrefillMs(const PrefillBatch& batch) const;
  // 0 for an empty batch.
  double DecodeMs(const DecodeBatch& batch) const;
  // out[i] = DecodeMs of pass i of a batch whose every request grows by one token a pass.
  void DecodeRunMs(const DecodeBatch& first, std::span<double> out) const;
  // True when DecodeMs is the same for every non-empty batch.
  bool ConstantDecode() const { return constant_decode_; }

 private:
  std::shared_ptr<const TimingModel> model_;
  double prefill_ratio_;
  double decode_ratio_;
  bool constant_decode_;
  double constant_decode_ms_ = 0.0;
};

// The rounding alone: raw milliseconds to milliseconds. Exposed for tests.
double ScaleMs(double raw_ms, double ratio);
// The same for every element, in place.
void ScaleRunMs(std::span<double> values, double ratio);

}  // namespace dynosim::timing
