// SPDX-License-Identifier: Apache-2.0
// The clock of live serving: milliseconds since an origin that the clock chooses. Drivers take it
// by reference, so that a test can move time by hand.
#pragma once

#include <chrono>
#include <cstdint>

namespace dynosim::live {

// Time of day, for values that leave the process; nothing is scheduled by it.
inline double UnixSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}
// The same in whole seconds, as the `created` fields of the API have it.
inline std::int64_t UnixWholeSeconds() { return static_cast<std::int64_t>(UnixSeconds()); }

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
  double NowMs() const override { return MsOf(std::chrono::steady_clock::now()); }
  double MsOf(Point point) const {
    return std::chrono::duration<double, std::milli>(point - origin_).count();
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
