// SPDX-License-Identifier: Apache-2.0
// FixedTiming: a constant time for the prefill part and one for the decode part of a pass.
#pragma once

#include <algorithm>
#include <span>

#include "timing/model.h"

namespace dynosim::timing {

class FixedTiming final : public TimingModel {
 public:
  // Finite, non-negative milliseconds.
  FixedTiming(double prefill_ms, double decode_ms)
      : prefill_ms_(prefill_ms), decode_ms_(decode_ms) {}

  double PrefillMs(const PrefillBatch&) const override { return prefill_ms_; }
  double DecodeMs(const DecodeBatch&) const override { return decode_ms_; }
  void DecodeRunMs(const DecodeBatch&, std::span<double> out) const override {
    std::ranges::fill(out, decode_ms_);
  }
  bool ConstantDecode() const override { return true; }

 private:
  double prefill_ms_;
  double decode_ms_;
};

}  // namespace dynosim::timing
