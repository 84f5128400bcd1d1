// SPDX-License-Identifier: Apache-2.0
// The only conversions between times in double seconds or milliseconds and whole nanoseconds.
// Seconds become nanoseconds by rounding the exact value to the nearest integer, ties to even.
// Nanoseconds become seconds as (whole seconds) + (rest / 1e9), and milliseconds as that times
// 1000; dividing by 1e6 instead would give other bits in a quarter of all values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace dynosim {

// The end of virtual time. A workload that asks for a later moment gets this one, so that sums and
// squares of times stay finite.
inline constexpr double kEndOfTimeMs = 1e150;
inline double WithinTime(double at_ms) { return std::min(at_ms, kEndOfTimeMs); }

// Answer of NanosFromSeconds for negative, non-finite and too large values (2^62 ns and more).
inline constexpr std::uint64_t kNoNanos = std::numeric_limits<std::uint64_t>::max();

// Adding and subtracting this rounds a double of magnitude below 2^51 to the nearest integer, ties
// to even.
inline constexpr double kRoundingBias = 0x1.8p52;

inline std::uint64_t NanosFromSeconds(double seconds) {
  constexpr double kPerSecond = 1e9;
  const double product = seconds * kPerSecond;  // rounded; fma(seconds, 1e9, -product) is the rest
  if (!(product >= 0.0 && product < 0x1p62)) {
    return kNoNanos;
  }
  if (product >= 0x1p51) {
    const double whole = std::floor(product);
    const double rest = (product - whole) + std::fma(seconds, kPerSecond, -product);
    const auto step = static_cast<std::int64_t>(std::floor(rest + 0.5));
    const bool tie = rest + 0.5 == static_cast<double>(step);
    const auto nanos = static_cast<std::uint64_t>(static_cast<std::int64_t>(whole) + step);
    return tie && (nanos & 1) != 0 ? nanos - 1 : nanos;
  }
  double nearest = (product + kRoundingBias) - kRoundingBias;
  // Only when the rounded product sits on a tie can the exact product be on another side of it.
  const double off = product - nearest;
  if (off == 0.5 || off == -0.5) {
    const double rest = std::fma(seconds, kPerSecond, -product);
    if (off > 0.0 && rest > 0.0) {
      nearest += 1.0;
    } else if (off < 0.0 && rest < 0.0) {
      nearest -= 1.0;
    }
  }
  return static_cast<std::uint64_t>(nearest);
}

inline double SecondsFromNanos(std::uint64_t nanos) {
  constexpr std::uint64_t kPerSecond = 1'000'000'000;
  const std::uint64_t whole = nanos / kPerSecond;
  return static_cast<double>(whole) + static_cast<double>(nanos % kPerSecond) / 1e9;
}

inline double MillisFromNanos(std::uint64_t nanos) { return SecondsFromNanos(nanos) * 1000.0; }
inline std::uint64_t NanosFromMillis(double millis) { return NanosFromSeconds(millis / 1000.0); }

}  // namespace dynosim
