// SPDX-License-Identifier: Apache-2.0
// Conversions between milliseconds and nanoseconds, against exact integer arithmetic.
#include "base/time.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace dynosim {
namespace {

// Round-half-even of the exact value of seconds * 1e9, in integers: seconds = mantissa *
// 2^exponent.
std::uint64_t ExactNanos(double seconds) {
  __extension__ using Wide = unsigned __int128;
  int exponent = 0;
  const double fraction = std::frexp(seconds, &exponent);
  const auto mantissa = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
  exponent -= 53;
  const Wide product = static_cast<Wide>(mantissa) * 1'000'000'000U;
  if (exponent >= 0) {
    return static_cast<std::uint64_t>(product << exponent);
  }
  const int shift = -exponent;
  if (shift > 100) {
    return 0;
  }
  const Wide whole = product >> shift;
  const Wide rest = product - (whole << shift);
  const Wide half = static_cast<Wide>(1) << (shift - 1);
  const bool up = rest > half || (rest == half && (whole & 1) != 0);
  return static_cast<std::uint64_t>(whole) + (up ? 1 : 0);
}

class Numbers {
 public:
  std::uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t v = (state_ ^ (state_ >> 30)) * 0xBF58476D1CE4E5B9U;
    v = (v ^ (v >> 27)) * 0x94D049BB133111EBU;
    return v ^ (v >> 31);
  }

 private:
  std::uint64_t state_ = 1;
};

TEST(Time, NanosEqualExactArithmeticOverAllMagnitudes) {
  Numbers numbers;
  for (int i = 0; i < 400000; ++i) {
    // Exponents from 2^-40 s to 2^31 s; every fourth mantissa is short, so that ties occur.
    const std::uint64_t bits = numbers.Next();
    double fraction = std::bit_cast<double>((bits >> 12) | 0x3FF0000000000000U);
    if (i % 4 == 0) {
      fraction = std::ldexp(std::floor(std::ldexp(fraction, static_cast<int>(bits % 30))),
                            -static_cast<int>(bits % 30));
    }
    const double seconds = std::ldexp(fraction, static_cast<int>((bits >> 3) % 72) - 40);
    ASSERT_EQ(NanosFromSeconds(seconds), ExactNanos(seconds)) << seconds;
  }
}

TEST(Time, NanosAroundEveryHalfEqualExactArithmetic) {
  Numbers numbers;
  for (int i = 0; i < 200000; ++i) {
    const std::uint64_t whole = numbers.Next() >> (2 + (numbers.Next() % 60));
    double seconds = (static_cast<double>(whole) + 0.5) / 1e9;
    for (int step = 0; step < 3; ++step) {
      ASSERT_EQ(NanosFromSeconds(seconds), ExactNanos(seconds)) << seconds;
      seconds = std::nextafter(seconds, step == 0 ? 0.0 : 1e300);
    }
  }
}

TEST(Time, ExactTiesGoToTheEvenNanosecond) {
  EXPECT_EQ(NanosFromMillis(0.9765625), 976562U);
  EXPECT_EQ(NanosFromMillis(2.9296875), 2929688U);
  EXPECT_EQ(NanosFromSeconds(std::ldexp(1.0, -10)), 976562U);         // 976562.5
  EXPECT_EQ(NanosFromSeconds(3.0 * std::ldexp(1.0, -10)), 2929688U);  // 2929687.5
}

TEST(Time, WhatIsNoDurationHasNoNanos) {
  for (const double bad :
       {-1e-9, -1.0, std::nan(""), std::numeric_limits<double>::infinity(), 1e10}) {
    EXPECT_EQ(NanosFromSeconds(bad), kNoNanos) << bad;
  }
  EXPECT_EQ(NanosFromSeconds(0.0), 0U);
  EXPECT_EQ(NanosFromSeconds(-0.0), 0U);
}

TEST(Time, MillisecondsAreSecondsTimesThousand) {
  EXPECT_EQ(MillisFromNanos(16886291), (16886291.0 / 1e9) * 1000.0);
  EXPECT_EQ(MillisFromNanos(3'000'000'007), (3.0 + 7.0 / 1e9) * 1000.0);
}

}  // namespace
}  // namespace dynosim
