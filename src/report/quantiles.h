// SPDX-License-Identifier: Apache-2.0
// Statistics of latency samples: mean, population deviation, extremes and nearest-rank percentiles.
// Percentile p of n samples is the sample of rank round_half_up((n - 1) * p / 100), never an
// interpolation, so every percentile is a sample and lies within [min, max]. Ranks are found by a
// histogram over the leading bits of the doubles; only buckets that hold a wanted rank are sorted.
// Samples that are not in memory are read a few times more instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/long_sequence.h"
#include "sim/outcome.h"

namespace dynosim::report {

// All zeros for no samples.
struct Distribution {
  std::uint64_t samples = 0;
  double mean = 0.0;
  double min = 0.0;
  double max = 0.0;
  double median = 0.0;
  double p75 = 0.0;
  double p90 = 0.0;
  double p95 = 0.0;
  double p99 = 0.0;
  double deviation = 0.0;  // population
  friend bool operator==(const Distribution&, const Distribution&) = default;
};

// Values are >= 0 and finite. The mean is the plain sum in the given order over n, corrected only
// where rounding has moved that sum by more than 1e-12 of it.
Distribution Describe(std::span<const double> values);
// The same, bit for bit, of values that may lie in a file.
Distribution Describe(const LongSequence<double>& values);

// Above this many weighted gaps the percentiles come from a sketch.
inline constexpr std::size_t kExactGapLimit = 4'000'000;

struct GapStatistics {
  Distribution gap_ms;             // all gaps, zero gaps included
  Distribution tokens_per_second;  // 1000 / gap over the positive gaps
  bool exact = true;               // false: percentiles carry a relative error of 0.001
};

// `gaps` are weighted (below 2^52); entries without weight do not count, entries that are not
// positive count as zero gaps.
GapStatistics DescribeGaps(std::span<const sim::GapSample> gaps, std::uint64_t zero_gaps,
                           std::size_t exact_limit = kExactGapLimit);
// The same, bit for bit, of the gaps of all parts one after the other.
GapStatistics DescribeGaps(std::span<const LongSequence<sim::GapSample>> parts,
                           std::uint64_t zero_gaps, std::size_t exact_limit = kExactGapLimit);

}  // namespace dynosim::report
