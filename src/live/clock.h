// SPDX-License-Identifier: Apache-2.0
// The clock of live serving: milliseconds since an origin that the clock chooses. Drivers take it
// by reference, so that a test can move time by hand.
#pragma once

#include <chrono>

namespace dynosim::live {

class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;
  virtual double NowMs() const = 0;
};

// CLOCK_MONOTONIC, from its construction.
class MonotonicClock final : public Clock {
 public:
  using Point = std::chrono::steady_clock::time_point;
  double NowMs() const override {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - origin_)
        .count();
  }
  // The absolute deadline of a time of this clock, rounded up to whole nanoseconds.
  Point At(double at_ms) const {
    return origin_ + std::chrono::ceil<std::chrono::nanoseconds>(
                         std::chrono::duration<double, std::milli>(at_ms));
  }

 private:
  Point origin_ = std::chrono::steady_clock::now();
};

}  // namespace dynosim::live
