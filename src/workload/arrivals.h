// SPDX-License-Identifier: Apache-2.0
// ArrivalProcess: the times at which an open-loop synthetic workload sends requests, one after the
// other: all at once, at a fixed interval, or with exponential gaps. The first time is 0 and each
// later one is the sum of the one before and a gap, in that order of additions.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace dynosim::workload {

class ArrivalProcess {
 public:
  // interval_ms == 0 sends everything at time 0.
  static ArrivalProcess FixedInterval(double interval_ms);
  static ArrivalProcess Poisson(double requests_per_second, std::uint64_t seed);

  // Time of the next arrival.
  double NextMs() const { return at_ms_; }
  void Advance() { at_ms_ += poisson_ ? random_.NextExponential(gap_ms_) : gap_ms_; }

 private:
  ArrivalProcess(bool poisson, double gap_ms, std::uint64_t seed)
      : poisson_(poisson), gap_ms_(gap_ms), random_(seed) {}

  bool poisson_;
  double gap_ms_;  // constant, or the mean
  double at_ms_ = 0.0;
  ChaCha12 random_;
};

}  // namespace dynosim::workload
