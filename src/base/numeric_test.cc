// SPDX-License-Identifier: Apache-2.0
#include "base/numeric.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include <gtest/gtest.h>

namespace dynosim {
namespace {

TEST(ParseTraceDecimal, ReadsOrdinaryNumbers) {
  EXPECT_EQ(ParseTraceDecimal("0"), 0.0);
  EXPECT_EQ(ParseTraceDecimal("-5"), -5.0);
  EXPECT_EQ(ParseTraceDecimal("0.5"), 0.5);
  EXPECT_EQ(ParseTraceDecimal("1.25e2"), 125.0);
  EXPECT_EQ(ParseTraceDecimal("12E-1"), 1.2);
  EXPECT_EQ(ParseTraceDecimal("1e+3"), 1000.0);
  EXPECT_TRUE(std::signbit(ParseTraceDecimal("-0").value_or(1.0)));
}

TEST(ParseTraceDecimal, LongNumbersAreConvertedOnceAndScaledOnce) {
  // 17 digits do not fit into a double, so the division starts from a rounded significand.
  EXPECT_EQ(ParseTraceDecimal("123.45678901234567"), 12345678901234567.0 / 1e14);
  EXPECT_EQ(ParseTraceDecimal("9007199254740993.5"), 90071992547409935.0 / 1e1);
  // 18446744073709551615 is the largest significand; later digits only shift.
  EXPECT_EQ(ParseTraceDecimal("18446744073709551615"), 18446744073709551615.0);
  EXPECT_EQ(ParseTraceDecimal("18446744073709551616"), 1844674407370955161.0 * 1e1);
  EXPECT_EQ(ParseTraceDecimal("123456789012345678901234"), 12345678901234567890.0 * 1e4);
  EXPECT_EQ(ParseTraceDecimal("0.1234567890123456789012345"), 12345678901234567890.0 / 1e20);
  EXPECT_EQ(ParseTraceDecimal("99999999999999999999.75"), 9999999999999999999.0 * 1e1);
}

TEST(ParseTraceDecimal, HugeAndTinyExponents) {
  EXPECT_EQ(ParseTraceDecimal("1e308"), 1e308);
  EXPECT_EQ(ParseTraceDecimal("1e309"), std::nullopt);
  EXPECT_EQ(ParseTraceDecimal("2e308"), std::nullopt);
  EXPECT_EQ(ParseTraceDecimal("1e99999999999999999999"), std::nullopt);
  EXPECT_EQ(ParseTraceDecimal("0e99999999999999999999"), 0.0);
  EXPECT_EQ(ParseTraceDecimal("1e-400"), 0.0);
  EXPECT_EQ(ParseTraceDecimal("1e-99999999999999999999"), 0.0);
  EXPECT_EQ(ParseTraceDecimal("5e-324"), 5.0 / 1e308 / 1e16);
}

TEST(ParseTraceDecimal, RefusesWhatIsNoJsonNumber) {
  for (const char* bad : {"", "-", "+1", "01", "-01", ".5", "1.", "1.e3", "1e", "1e+", "0x10", "1 ",
                          " 1", "NaN", "inf", "1_000", "1,5", "--1"}) {
    EXPECT_EQ(ParseTraceDecimal(bad), std::nullopt) << bad;
  }
}

TEST(SaturatingCast, ClampsToTheLimitsAndMapsNanToZero) {
  EXPECT_EQ(SaturatingCast<std::uint64_t>(-1.5), 0U);
  EXPECT_EQ(SaturatingCast<std::uint64_t>(1e30), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(SaturatingCast<std::uint64_t>(std::nan("")), 0U);
  EXPECT_EQ(SaturatingCast<std::uint64_t>(2.9), 2U);
  EXPECT_EQ(SaturatingCast<std::int64_t>(-1e30), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(SaturatingCast<std::int64_t>(-2.9), -2);
  EXPECT_EQ(SaturatingCast<std::uint32_t>(4294967295.0), 4294967295U);
  EXPECT_EQ(SaturatingCast<std::uint32_t>(4294967296.0), 4294967295U);
  EXPECT_EQ(SaturatingCast<std::int32_t>(-2147483649.0), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(SaturatingCast<std::uint8_t>(255.9), 255U);
}

TEST(RoundHalfAway, TiesLeaveZero) {
  EXPECT_EQ(RoundHalfAway(0.5), 1.0);
  EXPECT_EQ(RoundHalfAway(2.5), 3.0);
  EXPECT_EQ(RoundHalfAway(-2.5), -3.0);
  EXPECT_EQ(RoundHalfAway(0.49999999999999994), 0.0);
}

TEST(SaturatingArithmetic, StopsAtTheMaximum) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(SaturatingAdd(kMax, 1), kMax);
  EXPECT_EQ(SaturatingAdd(2, 3), 5U);
  EXPECT_EQ(SaturatingMultiply(std::uint64_t{1} << 40, std::uint64_t{1} << 24), kMax);
  EXPECT_EQ(SaturatingMultiply(0, kMax), 0U);
}

}  // namespace
}  // namespace dynosim
