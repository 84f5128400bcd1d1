// SPDX-License-Identifier: Apache-2.0
// Milliseconds and nanoseconds. Virtual time is a double in milliseconds; a timing model's answer is
// first made a whole number of nanoseconds. These are the only conversions between the two.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/numeric.h"

namespace dynosim {

// Nearest whole nanosecond as a double, ties to even; exact for |ms| below 4 million seconds, where a
// nanosecond count passes 2^52 and is whole anyway.
inline double NanosOfMillis(double ms) {
  const double nanos = ms * 1e6;
  // Adding and subtracting 1.5 * 2^52 rounds to a whole number in the default rounding mode without a
  // call to the math library.
  constexpr double kRound = 0x1.8p52;
  if (!(std::fabs(nanos) < 0x1p51)) {
    return nanos;
  }
  return (nanos + kRound) - kRound;
}

// Milliseconds of a whole number of nanoseconds: through seconds, which differs from nanos / 1e6 in a
// quarter of all values.
inline double MillisOfNanos(double nanos) { return (nanos / 1e9) * 1000.0; }

inline std::int64_t WholeNanosOfMillis(double ms) {
  return SaturatingCast<std::int64_t>(NanosOfMillis(ms));
}

}  // namespace dynosim
