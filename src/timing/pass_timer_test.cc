// SPDX-License-Identifier: Apache-2.0
// Pass durations against the four roundings in exact integer arithmetic, one value at a time and in
// runs, and the formulas of the fixed and polynomial models.
#include "timing/pass_timer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "timing/fixed.h"
#include "timing/model.h"
#include "timing/polynomial.h"

namespace dynosim::timing {
namespace {

// Round-half-even of seconds * 1e9 in integers.
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
  if (exponent < -100) {
    return 0;
  }
  const Wide whole = product >> -exponent;
  const Wide rest = product - (whole << -exponent);
  const Wide half = static_cast<Wide>(1) << (-exponent - 1);
  const bool up = rest > half || (rest == half && (whole & 1) != 0);
  return static_cast<std::uint64_t>(whole) + (up ? 1 : 0);
}

double ExactSeconds(std::uint64_t nanos) {
  const std::uint64_t whole = nanos / 1'000'000'000;
  return static_cast<double>(whole) + static_cast<double>(nanos % 1'000'000'000) / 1e9;
}

// The rule as written: up to four roundings, no shortcut.
double SlowScale(double raw_ms, double ratio) {
  std::uint64_t nanos = ExactNanos(raw_ms / 1000.0);
  if (ratio > 0.0 && nanos > 0) {
    nanos = ExactNanos(ExactSeconds(nanos) / ratio);
  }
  const double ms = ExactSeconds(nanos) * 1000.0;
  return ExactSeconds(ExactNanos(ms / 1000.0)) * 1000.0;
}

std::uint64_t Mix(std::uint64_t i) {
  std::uint64_t v = (i + 1) * 0x9E3779B97F4A7C15U;
  v = (v ^ (v >> 30)) * 0xBF58476D1CE4E5B9U;
  v = (v ^ (v >> 27)) * 0x94D049BB133111EBU;
  return v ^ (v >> 31);
}

// Durations of every magnitude, many of them exact ties or next to one.
std::vector<double> Durations(std::size_t count) {
  std::vector<double> out;
  for (std::uint64_t i = 0; out.size() < count; ++i) {
    const std::uint64_t bits = Mix(i);
    const double fraction = std::bit_cast<double>((bits >> 12) | 0x3FF0000000000000U);
    const double any = std::ldexp(fraction, static_cast<int>(bits % 45) - 18);
    const double tie = (std::floor(any * 1e6) + 0.5) / 1e6;
    const double dyadic =
        std::ldexp(static_cast<double>(bits % 100000), -static_cast<int>(bits % 13));
    for (const double value :
         {any, tie, std::nextafter(tie, 0.0), std::nextafter(tie, 1e300), dyadic}) {
      out.push_back(value);
    }
  }
  return out;
}

constexpr double kRatios[] = {0.0, 1.0, 2.0, 0.5, 3.0, 1.1, 0.37, 10.0, 1e-3, 12345.678};

TEST(PassTimer, ScalingEqualsTheRuleInExactArithmetic) {
  for (const double ratio : kRatios) {
    for (const double raw : Durations(60000)) {
      ASSERT_EQ(ScaleMs(raw, ratio), SlowScale(raw, ratio)) << raw << " ratio " << ratio;
    }
  }
}

TEST(PassTimer, ScalingOfRunsEqualsScalingOneByOne) {
  for (const double ratio : kRatios) {
    for (const std::size_t length :
         {std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{200003}}) {
      const std::vector<double> raw = Durations(length);
      std::vector<double> run = raw;
      ScaleRunMs(run, ratio);
      for (std::size_t i = 0; i < raw.size(); ++i) {
        ASSERT_EQ(run[i], ScaleMs(raw[i], ratio)) << raw[i] << " ratio " << ratio;
      }
    }
  }
}

TEST(PassTimer, ScalingOfRunsOfShortPassesEqualsScalingOneByOne) {
  for (const double ratio : kRatios) {
    std::vector<double> raw;
    raw.reserve(200000);
    for (std::uint64_t i = 0; i < 200000; ++i) {
      raw.push_back(static_cast<double>(Mix(i) >> 11) * std::ldexp(1.0, -53) * 40.0);
    }
    std::vector<double> run = raw;
    ScaleRunMs(run, ratio);
    for (std::size_t i = 0; i < raw.size(); ++i) {
      ASSERT_EQ(run[i], ScaleMs(raw[i], ratio)) << raw[i] << " ratio " << ratio;
    }
  }
}

TEST(PassTimer, AnExactTieGoesToTheEvenNanosecond) {
  EXPECT_EQ(ScaleMs(0.9765625, 1.0), 0.976562);
  EXPECT_EQ(ScaleMs(2.9296875, 1.0), (2929688.0 / 1e9) * 1000.0);
  std::vector<double> run(16, 0.9765625);
  ScaleRunMs(run, 1.0);
  EXPECT_EQ(run, std::vector<double>(16, 0.976562));
}

TEST(PassTimer, WhatIsNoDurationIsNaN) {
  for (const double bad :
       {-1.0, -1e-300 - 1e-5, std::nan(""), std::numeric_limits<double>::infinity(), 1e40}) {
    EXPECT_TRUE(std::isnan(ScaleMs(bad, 1.0))) << bad;
    std::vector<double> run(9, bad);
    ScaleRunMs(run, 1.0);
    EXPECT_TRUE(std::ranges::all_of(run, [](double v) { return std::isnan(v); })) << bad;
  }
  EXPECT_TRUE(std::isnan(ScaleMs(1.0, 1e-300)));
}

TEST(PassTimer, PolynomialValuesFollowTheFormula) {
  const PassTimer timer(std::make_shared<PolynomialTiming>(), 1.0, 1.0);
  // 2 requests, 1024 new tokens each: t = 2048.
  const double prefill = 4.209989e-07 * (2048.0 * 2048.0) + 1.518344e-02 * 2048.0 + 1.650142e+01;
  EXPECT_EQ(timer.PrefillMs({.requests = 2, .mean_new = 1024, .mean_prefix = 7}),
            SlowScale(prefill, 1.0));
  const double u = 1000.0 / 4096.0;
  EXPECT_EQ(timer.DecodeMs({.requests = 3, .context_tokens = 1000, .capacity_tokens = 4096}),
            SlowScale(-25.74 * (u * u) + 54.01 * u + 5.74, 1.0));
  // A full pool and an overfull one take the same time.
  EXPECT_EQ(timer.DecodeMs({.requests = 3, .context_tokens = 4096, .capacity_tokens = 4096}),
            timer.DecodeMs({.requests = 3, .context_tokens = 9999, .capacity_tokens = 4096}));
  EXPECT_EQ(timer.PrefillMs({.requests = 0, .mean_new = 5, .mean_prefix = 0}), 0.0);
  EXPECT_EQ(timer.PrefillMs({.requests = 5, .mean_new = 0, .mean_prefix = 9}), 0.0);
  EXPECT_EQ(timer.DecodeMs({.requests = 0, .context_tokens = 0, .capacity_tokens = 4096}), 0.0);
}

TEST(PassTimer, ARunEqualsItsPassesOneByOne) {
  const auto model = std::make_shared<PolynomialTiming>();
  for (const std::uint64_t capacity :
       {std::uint64_t{1} << 20, std::uint64_t{100000}, std::uint64_t{4}}) {
    for (const std::uint64_t context :
         {std::uint64_t{1}, std::uint64_t{65536}, std::uint64_t{1} << 60}) {
      const PassTimer timer(model, 1.0, capacity == 4 ? 1.7 : 1.0);
      const DecodeBatch first{
          .requests = 63, .context_tokens = context, .capacity_tokens = capacity};
      for (const std::size_t length :
           {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{4099}}) {
        std::vector<double> run(length);
        timer.DecodeRunMs(first, run);
        for (std::size_t i = 0; i < length; ++i) {
          ASSERT_EQ(run[i], timer.DecodeMs({63, context + i * 63, capacity})) << i;
        }
      }
    }
  }
}

TEST(PassTimer, RatiosScalePrefillAndDecode) {
  const PassTimer timer(std::make_shared<FixedTiming>(10.0, 3.0), 2.0, 3.0);
  EXPECT_EQ(timer.PrefillMs({.requests = 1, .mean_new = 1, .mean_prefix = 0}), 5.0);
  EXPECT_EQ(timer.DecodeMs({.requests = 1, .context_tokens = 1, .capacity_tokens = 1}), 0.5);
  EXPECT_TRUE(timer.ConstantDecode());
  std::vector<double> run(5);
  timer.DecodeRunMs({.requests = 1, .context_tokens = 1, .capacity_tokens = 1}, run);
  EXPECT_EQ(run, std::vector<double>(5, 0.5));
  // A zero ratio switches scaling off; for decode the product counts.
  const PassTimer unscaled(std::make_shared<FixedTiming>(10.0, 3.0), 2.0, 0.0);
  EXPECT_EQ(unscaled.DecodeMs({.requests = 1, .context_tokens = 1, .capacity_tokens = 1}), 3.0);
}

}  // namespace
}  // namespace dynosim::timing
