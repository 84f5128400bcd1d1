// SPDX-License-Identifier: Apache-2.0
// Distributions against sorted expansions, on hand-made and random samples.
#include "report/quantiles.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/long_sequence.h"
#include "base/scratch_file.h"
#include "report/moments.h"
#include "sim/outcome.h"

namespace dynosim::report {
namespace {

using sim::GapSample;

// By sorting; moments with compensated sums.
Distribution Naive(std::vector<double> values) {
  Distribution out;
  if (values.empty()) {
    return out;
  }
  std::ranges::sort(values);
  const std::size_t n = values.size();
  const auto rank = [&](double p) {
    return values[static_cast<std::size_t>(
        std::floor(static_cast<double>(n - 1) * p / 100.0 + 0.5))];
  };
  CompensatedSum sum;
  for (const double value : values) {
    sum.Add(value);
  }
  const double mean = sum.Total() / static_cast<double>(n);
  CompensatedSum squares;
  for (const double value : values) {
    squares.Add((value - mean) * (value - mean));
  }
  return {.samples = n,
          .mean = mean,
          .min = values.front(),
          .max = values.back(),
          .median = rank(50),
          .p75 = rank(75),
          .p90 = rank(90),
          .p95 = rank(95),
          .p99 = rank(99),
          .deviation = std::sqrt(squares.Total() / static_cast<double>(n))};
}

bool Near(double a, double b, double tolerance) {
  return std::fabs(a - b) <= tolerance * std::max(std::fabs(a), std::fabs(b)) + 1e-300;
}

// Ranks and extremes are equal, moments agree to 1e-12.
std::string Difference(const Distribution& want, const Distribution& got) {
  Distribution moments_of_want = got;
  moments_of_want.mean = want.mean;
  moments_of_want.deviation = want.deviation;
  if (!(moments_of_want == want)) {
    return "ranks differ";
  }
  if (!Near(want.mean, got.mean, 1e-12)) {
    return "mean " + std::to_string(want.mean) + " " + std::to_string(got.mean);
  }
  // What the rounding of the values themselves leaves open.
  const double noise = 1e-15 * want.max;
  if (std::fabs(want.deviation - got.deviation) > 1e-12 * want.deviation + noise) {
    return "deviation " + std::to_string(want.deviation) + " " + std::to_string(got.deviation);
  }
  return "";
}

struct Expanded {
  std::vector<double> gaps;
  std::vector<double> rates;
};
Expanded Expand(const std::vector<GapSample>& samples, std::uint64_t zero_gaps) {
  Expanded out;
  out.gaps.assign(zero_gaps, 0.0);
  for (const GapSample& sample : samples) {
    for (std::uint64_t i = 0; i < sample.weight; ++i) {
      out.gaps.push_back(double{sample.gap_ms});  // packed, so taken by value
      out.rates.push_back(1000.0 / sample.gap_ms);
    }
  }
  return out;
}

void ExpectLikeExpansion(const std::vector<GapSample>& samples, std::uint64_t zero_gaps) {
  const Expanded expanded = Expand(samples, zero_gaps);
  const GapStatistics got = DescribeGaps(samples, zero_gaps);
  EXPECT_TRUE(got.exact);
  EXPECT_EQ(Difference(Naive(expanded.gaps), got.gap_ms), "");
  EXPECT_EQ(Difference(Naive(expanded.rates), got.tokens_per_second), "");
}

TEST(Quantiles, PercentilesAreNearestRanksWithHalvesRoundedUp) {
  const Distribution four = Describe(std::vector<double>{40, 10, 30, 20});
  EXPECT_EQ(four.median, 30);  // rank 1.5 becomes 2
  EXPECT_EQ(four.p75, 30);     // rank 2.25
  EXPECT_EQ(four.p90, 40);     // rank 2.7
  EXPECT_EQ(four.min, 10);
  EXPECT_EQ(four.max, 40);
  EXPECT_EQ(four.mean, 25);
  EXPECT_DOUBLE_EQ(four.deviation, std::sqrt(125.0));
}

TEST(Quantiles, NoSamplesGiveZerosEverywhere) {
  EXPECT_EQ(Describe(std::vector<double>()), Distribution());
  const GapStatistics gaps = DescribeGaps(std::vector<GapSample>(), 0);
  EXPECT_EQ(gaps.gap_ms, Distribution());
  EXPECT_EQ(gaps.tokens_per_second, Distribution());
}

TEST(Quantiles, OneSampleIsEveryStatistic) {
  const Distribution one = Describe(std::vector<double>{7.25});
  EXPECT_EQ(one, (Distribution{1, 7.25, 7.25, 7.25, 7.25, 7.25, 7.25, 7.25, 7.25, 0.0}));
}

TEST(Quantiles, ZerosAreOrdinaryValues) {
  const Distribution values = Describe(std::vector<double>{0.0, 0.0, 3.0});
  EXPECT_EQ(values.median, 0.0);
  EXPECT_EQ(values.min, 0.0);
  EXPECT_EQ(values.mean, 1.0);
}

TEST(Quantiles, EqualValuesHaveNoDeviationAndTheirOwnMean) {
  const Distribution values = Describe(std::vector<double>(100'000, 0.1));
  EXPECT_EQ(values.mean, 0.1);
  EXPECT_EQ(values.deviation, 0.0);
  EXPECT_EQ(values.p99, 0.1);
}

TEST(Quantiles, TheMeanIsThePlainOrderedSum) {
  std::vector<double> values;
  double sum = 0.0;
  for (int i = 0; i < 1000; ++i) {
    values.push_back(0.1 * ((i * 7919) % 1000));
    sum += values.back();
  }
  EXPECT_EQ(Describe(values).mean, sum / 1000.0);
}

TEST(Quantiles, AStrayedPlainSumIsCorrected) {
  std::vector<double> values(2'000'000, 0.1);
  values.push_back(0.2);
  double sum = 0.0;
  for (const double value : values) {
    sum += value;
  }
  const double mean = (200'000.0 + 0.2) / 2'000'001.0;
  ASSERT_FALSE(Near(sum / 2'000'001.0, mean, 1e-12));
  EXPECT_TRUE(Near(Describe(values).mean, mean, 1e-14));
}

TEST(Quantiles, ZeroGapsCountInGapsButNotInRates) {
  const std::vector<GapSample> gaps = {{.gap_ms = 2.0, .weight = 1}, {.gap_ms = 4.0, .weight = 1}};
  const GapStatistics out = DescribeGaps(gaps, 3);
  EXPECT_EQ(out.gap_ms.samples, 5U);
  EXPECT_EQ(out.gap_ms.min, 0.0);
  EXPECT_EQ(out.gap_ms.median, 0.0);
  EXPECT_EQ(out.gap_ms.p75, 2.0);
  EXPECT_DOUBLE_EQ(out.gap_ms.mean, 1.2);
  EXPECT_EQ(out.tokens_per_second.samples, 2U);
  EXPECT_EQ(out.tokens_per_second.min, 250.0);
  EXPECT_EQ(out.tokens_per_second.median, 500.0);  // rank 0.5 becomes 1
  EXPECT_EQ(out.tokens_per_second.mean, 375.0);
}

TEST(Quantiles, OnlyZeroGapsAreAllZeros) {
  const GapStatistics out = DescribeGaps(std::span<const sim::GapSample>(), 4);
  EXPECT_EQ(out.gap_ms.samples, 4U);
  EXPECT_EQ(out.gap_ms.p99, 0.0);
  EXPECT_EQ(out.gap_ms.max, 0.0);
  EXPECT_EQ(out.tokens_per_second, Distribution());
}

TEST(Quantiles, WeightlessGapsDoNotCountAndGapsOfZeroAreZeroGaps) {
  const std::vector<GapSample> gaps = {
      {.gap_ms = 9.0, .weight = 0}, {.gap_ms = 0.0, .weight = 2}, {.gap_ms = 5.0, .weight = 1}};
  const GapStatistics out = DescribeGaps(gaps, 1);
  EXPECT_EQ(out.gap_ms.samples, 4U);
  EXPECT_EQ(out.gap_ms.max, 5.0);
  EXPECT_EQ(out.gap_ms.median, 0.0);
  EXPECT_EQ(out.tokens_per_second.samples, 1U);
}

TEST(Quantiles, HugeWeightsNeedNoExpansion) {
  const std::vector<GapSample> gaps = {{.gap_ms = 1.0, .weight = 4'000'000'000},
                                       {.gap_ms = 3.0, .weight = 4'000'000'001}};
  const GapStatistics out = DescribeGaps(gaps, 0);
  EXPECT_EQ(out.gap_ms.median, 3.0);
  EXPECT_EQ(out.tokens_per_second.median, 1000.0 / 3.0);
  EXPECT_TRUE(Near(out.gap_ms.mean, 2.0 + 1.25e-10, 1e-12));
}

// Well-mixed bits, always the same ones for a seed (splitmix64).
class Bits {
 public:
  explicit Bits(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
  }

 private:
  std::uint64_t state_;
};

std::vector<GapSample> RandomGaps(std::size_t count, std::uint64_t seed,
                                  double (*gap)(std::uint64_t)) {
  Bits bits(seed);
  std::vector<GapSample> out(count);
  for (GapSample& sample : out) {
    sample = {.gap_ms = gap(bits.Next()), .weight = static_cast<std::uint32_t>(bits.Next() % 5)};
  }
  return out;
}

double Fraction(std::uint64_t bits) { return static_cast<double>(bits >> 11U) * 0x1p-53; }

TEST(Quantiles, ManySpreadGapsAgreeWithTheirExpansion) {
  ExpectLikeExpansion(
      RandomGaps(100'000, 1, [](std::uint64_t bits) { return 5.0 + 40.0 * Fraction(bits); }), 17);
}

TEST(Quantiles, ManyNearlyEqualGapsAgreeWithTheirExpansion) {
  ExpectLikeExpansion(
      RandomGaps(100'000, 2, [](std::uint64_t bits) { return 2.0 + 1e-11 * Fraction(bits); }), 0);
}

TEST(Quantiles, ClustersOfNearlyEqualGapsAgreeWithTheirExpansion) {
  ExpectLikeExpansion(RandomGaps(100'000, 3,
                                 [](std::uint64_t bits) {
                                   const double center = bits % 10 == 0 ? 12.0 : 2.0;
                                   return center + 1e-11 * Fraction(bits);
                                 }),
                      1000);
}

TEST(Quantiles, ClusterFollowedByAnotherKeepsTheDeviationTrue) {
  std::vector<GapSample> gaps(2000, {.gap_ms = 1e6, .weight = 1});
  for (int i = 0; i < 200'000; ++i) {
    gaps.push_back({.gap_ms = 1.0 + 1e-3 * (i % 7), .weight = 3});
  }
  gaps.erase(gaps.begin(), gaps.begin() + 1990);
  ExpectLikeExpansion(gaps, 0);
}

TEST(Quantiles, ValuesFarOutsideTheUsualRangeAgreeWithTheirExpansion) {
  ExpectLikeExpansion(RandomGaps(20'000, 4,
                                 [](std::uint64_t bits) {
                                   return std::ldexp(1.0 + Fraction(bits),
                                                     static_cast<int>(bits % 400) - 200);
                                 }),
                      5);
}

RC_GTEST_PROP(QuantilesProperty, WeightedGapsEqualTheirExpansion, ()) {
  const auto picks =
      *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 60));
  const auto zero_gaps = *rc::gen::inRange<std::uint64_t>(0, 20);
  std::vector<GapSample> gaps;
  gaps.reserve(picks.size());
  for (const std::uint64_t pick : picks) {
    gaps.push_back({.gap_ms = 0.3 + 0.1 * static_cast<double>(pick % 12),
                    .weight = static_cast<std::uint32_t>(pick / 12)});
  }
  const Expanded expanded = Expand(gaps, zero_gaps);
  const GapStatistics got = DescribeGaps(gaps, zero_gaps);
  RC_ASSERT(Difference(Naive(expanded.gaps), got.gap_ms).empty());
  RC_ASSERT(Difference(Naive(expanded.rates), got.tokens_per_second).empty());
}

RC_GTEST_PROP(QuantilesProperty, PlainValuesEqualSortedOnesWhateverTheirBits, ()) {
  const auto patterns = *rc::gen::container<std::vector<std::uint64_t>>(
      rc::gen::inRange<std::uint64_t>(0, std::bit_cast<std::uint64_t>(1e100)));
  std::vector<double> values;
  values.reserve(patterns.size());
  for (const std::uint64_t pattern : patterns) {
    values.push_back(std::bit_cast<double>(pattern));
  }
  const Distribution want = Naive(values);
  const Distribution got = Describe(values);
  RC_ASSERT(got.min == want.min && got.max == want.max && got.median == want.median);
  RC_ASSERT(got.p75 == want.p75 && got.p90 == want.p90);
  RC_ASSERT(got.p95 == want.p95 && got.p99 == want.p99);
  RC_ASSERT(got.mean >= got.min && got.mean <= got.max);
}

TEST(Quantiles, TheSketchStaysWithinATenthOfAPercentAndInsideTheExtremes) {
  const auto gaps =
      RandomGaps(20'000, 5, [](std::uint64_t bits) { return 1.0 + 99.0 * Fraction(bits); });
  const GapStatistics exact = DescribeGaps(gaps, 3);
  const GapStatistics sketch = DescribeGaps(gaps, 3, 19'999);
  EXPECT_TRUE(exact.exact);
  EXPECT_FALSE(sketch.exact);
  for (const auto field : {&Distribution::median, &Distribution::p75, &Distribution::p90,
                           &Distribution::p95, &Distribution::p99}) {
    EXPECT_TRUE(Near(exact.gap_ms.*field, sketch.gap_ms.*field, 1.0001e-3));
    EXPECT_TRUE(Near(exact.tokens_per_second.*field, sketch.tokens_per_second.*field, 1.0021e-3));
  }
  EXPECT_EQ(exact.gap_ms.mean, sketch.gap_ms.mean);
  EXPECT_EQ(exact.gap_ms.min, sketch.gap_ms.min);
  EXPECT_EQ(exact.tokens_per_second.max, sketch.tokens_per_second.max);
}

TEST(Quantiles, TheSketchOfOneValueIsThatValue) {
  const std::vector<GapSample> gaps(3, {.gap_ms = 2.0, .weight = 4});
  const GapStatistics out = DescribeGaps(gaps, 0, 2);
  EXPECT_FALSE(out.exact);
  EXPECT_EQ(out.gap_ms.median, 2.0);  // the middle of the bucket is 1.9997
  EXPECT_EQ(out.tokens_per_second.p99, 500.0);
}

TEST(Quantiles, TheSketchMiddlesAreTheDocumentedOnes) {
  const std::vector<GapSample> gaps = {
      {.gap_ms = 0.1, .weight = 1}, {.gap_ms = 5.0, .weight = 8}, {.gap_ms = 900.0, .weight = 1}};
  EXPECT_EQ(DescribeGaps(gaps, 0, 0).gap_ms.median, 4.997811098765266);
}

// Bit for bit: a streamed run gives the bytes of one that kept everything.
TEST(Quantiles, ValuesInAFileGiveTheSameBits) {
  Bits draws(17);
  for (const std::size_t count : {std::size_t{8193}, std::size_t{20'000}, std::size_t{70'001}}) {
    for (const std::uint64_t distinct : {1U, 3U, 5000U, 1U << 30U}) {
      ScratchFile scratch;
      LongSequence<double> in_file(&scratch);
      std::vector<double> in_memory;
      for (std::size_t i = 0; i < count; ++i) {
        const double value = static_cast<double>(draws.Next() % distinct) * 0.37;
        in_file.Append(value);
        in_memory.push_back(value);
      }
      ASSERT_FALSE(in_file.InMemory());
      EXPECT_EQ(Describe(in_file), Describe(in_memory)) << count << " of " << distinct;
    }
  }
}

TEST(Quantiles, GapsInAFileGiveTheSameBits) {
  Bits draws(18);
  for (const std::size_t limit : {std::size_t{1}, kExactGapLimit}) {
    for (const std::uint64_t distinct : {1U, 40U, 1U << 30U}) {
      ScratchFile scratch;
      std::vector<LongSequence<GapSample>> parts;
      std::vector<GapSample> in_memory;
      for (const std::size_t count : {std::size_t{0}, std::size_t{700}, std::size_t{30'001}}) {
        parts.emplace_back(&scratch);
        for (std::size_t i = 0; i < count; ++i) {
          const GapSample gap{.gap_ms = static_cast<double>(draws.Next() % distinct) * 0.37 + 0.1,
                              .weight = static_cast<std::uint32_t>(draws.Next() % 4)};
          parts.back().Append(gap);
          in_memory.push_back(gap);
        }
      }
      const GapStatistics want = DescribeGaps(in_memory, 5, limit);
      const GapStatistics got =
          DescribeGaps(std::span<const LongSequence<GapSample>>(parts), 5, limit);
      EXPECT_EQ(got.gap_ms, want.gap_ms) << distinct;
      EXPECT_EQ(got.tokens_per_second, want.tokens_per_second) << distinct;
      EXPECT_EQ(got.exact, want.exact);
    }
  }
}

}  // namespace
}  // namespace dynosim::report
