// SPDX-License-Identifier: Apache-2.0
// Fills distributions: one pass for moments and histogram, then rank selection (rank_select.h), or
// the log-bucket sketch when there are too many gaps.
#include "report/quantiles.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/long_sequence.h"
#include "report/log_sketch.h"
#include "report/moments.h"
#include "report/rank_scan.h"
#include "report/rank_select.h"
#include "sim/outcome.h"

namespace dynosim::report {
namespace {

constexpr std::array<std::uint64_t, 5> kPercentiles = {50, 75, 90, 95, 99};
constexpr std::array<double Distribution::*, 5> kPercentileFields = {
    &Distribution::median, &Distribution::p75, &Distribution::p90, &Distribution::p95,
    &Distribution::p99};

constexpr double kRateScale = 1000.0;  // gap in ms to tokens per second
constexpr double kLeastGap = std::numeric_limits<double>::denorm_min();
constexpr double kMost = std::numeric_limits<double>::max();
// A plain sum that has strayed further than this from the true one is not reported.
constexpr double kPlainSumTolerance = 1e-12;

std::uint64_t RankOf(std::uint64_t percentile, std::uint64_t samples) {
  return ((samples - 1) * percentile * 2 + 100) / 200;
}

// Whole numbers below 2^52 as doubles; written so that two are converted side by side.
double WholeToDouble(std::uint64_t value) {
  constexpr double kTwoTo52 = 0x1p52;
  return std::bit_cast<double>(value | std::bit_cast<std::uint64_t>(kTwoTo52)) - kTwoTo52;
}

// Samples of one block, apart: the arrays that arithmetic runs over.
struct Block {
  BlockArray values{};
  BlockArray weights{};
  std::array<std::uint64_t, kBlockSize> counts{};
  std::size_t used = 0;
  std::uint64_t weight = 0;    // of the samples taken
  std::uint64_t left_out = 0;  // weight of the others
  bool took_all = true;

  // Takes the samples of some weight whose value is at least `low`. The rest of the block repeats
  // the last value without weight, so that loops have a fixed length.
  template <class Sample>
  void Fill(std::span<const Sample> samples, double low) {
    std::uint64_t total = 0;
    bool all = true;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      values[i] = SampleValue(samples[i]);
      counts[i] = SampleWeight(samples[i]);
      total += counts[i];
      all &= counts[i] != 0 && values[i] >= low;
    }
    used = samples.size();
    took_all = all;
    left_out = all ? 0 : Compact(low);
    weight = total - left_out;
    for (std::size_t i = used; i < kBlockSize; ++i) {
      values[i] = used > 0 ? values[used - 1] : 1.0;
      counts[i] = 0;
    }
    for (std::size_t i = 0; i < kBlockSize; ++i) {
      weights[i] = WholeToDouble(counts[i]);
    }
  }

 private:
  std::uint64_t Compact(double low) {
    std::size_t taken = 0;
    std::uint64_t dropped = 0;
    for (std::size_t i = 0; i < used; ++i) {
      const std::uint64_t count = counts[i];
      const bool takes = count != 0 && values[i] >= low;
      values[taken] = values[i];
      counts[taken] = count;
      taken += takes ? 1U : 0U;
      dropped += takes ? 0U : count;
    }
    used = taken;
    return dropped;
  }
};

// Calls visit(block, samples read) for all blocks in order; returns the weight left out.
template <class Sample, class Visit>
std::uint64_t ForEachBlock(std::span<const Sample> samples, double low, const Visit& visit) {
  Block block;
  std::uint64_t left_out = 0;
  for (std::size_t at = 0; at < samples.size(); at += kBlockSize) {
    const std::size_t count = std::min(kBlockSize, samples.size() - at);
    block.Fill(samples.subspan(at, count), low);
    left_out += block.left_out;
    visit(block, count);
  }
  return left_out;
}

// Samples of sequences, one after the other.
template <class Sample>
struct LongSamples {
  std::span<const LongSequence<Sample>> parts;

  template <class Visit>
  void ForEachPiece(const Visit& visit) const {
    for (const LongSequence<Sample>& part : parts) {
      part.ForEachPiece(visit);
    }
  }
};

// The same blocks as of one array.
template <class Sample, class Visit>
std::uint64_t ForEachBlock(const LongSamples<Sample>& samples, double low, const Visit& visit) {
  std::vector<Sample> held;  // less than a block of them
  std::uint64_t left_out = 0;
  samples.ForEachPiece([&](std::span<const Sample> piece) {
    while (!piece.empty()) {
      const std::size_t count = std::min(kBlockSize - held.size(), piece.size());
      held.insert(held.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
      piece = piece.subspan(count);
      if (held.size() == kBlockSize) {
        left_out += ForEachBlock(std::span<const Sample>(held), low, visit);
        held.clear();
      }
    }
  });
  return left_out + ForEachBlock(std::span<const Sample>(held), low, visit);
}

void Invert(const BlockArray& values, BlockArray& __restrict__ rates) {
  for (std::size_t i = 0; i < kBlockSize; ++i) {
    rates[i] = kRateScale / values[i];
  }
}

// Mean and deviation of a distribution whose extremes are known; one value has no deviation.
void SetMoments(Distribution& out, double mean, double deviation) {
  out.mean = std::clamp(mean, out.min, out.max);
  out.deviation = out.min < out.max ? deviation : 0.0;
}

struct GapMoments {
  Moments gap;
  Moments rate;

  void Add(const Block& block) {
    BlockArray rates;
    Invert(block.values, rates);
    gap.Add(block.values, block.weights);
    rate.Add(rates, block.weights);
  }
};

// What the first pass over the gaps finds out, besides ranks.
struct GapPass {
  GapMoments moments;
  std::uint64_t positive = 0;
  std::uint64_t zeros = 0;
};

template <class Sample>
void AddBlock(RankSelector<Sample>& ranks, const Block& block, std::size_t samples) {
  ranks.Add(samples, block.took_all);
}

template <class Source>
void AddBlock(RankScan<Source>& /*reads for itself*/, const Block&, std::size_t) {}

void AddBlock(LogSketch& ranks, const Block& block, std::size_t) {
  for (std::size_t i = 0; i < block.used; ++i) {
    ranks.Add(block.values[i], block.counts[i]);
  }
}

template <class Gaps, class Ranks>
void ReadGaps(const Gaps& gaps, Ranks& ranks, GapPass& pass) {
  pass.zeros += ForEachBlock(gaps, kLeastGap, [&](const Block& block, std::size_t samples) {
    AddBlock(ranks, block, samples);
    if (block.used > 0) {
      pass.moments.Add(block);
      pass.positive += block.weight;
    }
  });
}

// Moments around the means themselves, for gaps whose first block was not like the rest.
template <class Gaps>
GapMoments RereadMoments(const Gaps& gaps, const GapPass& pass) {
  GapMoments moments{.gap = Moments(pass.moments.gap.Mean(pass.positive + pass.zeros)),
                     .rate = Moments(pass.moments.rate.Mean(pass.positive))};
  ForEachBlock(gaps, kLeastGap, [&](const Block& block, std::size_t) {
    if (block.used > 0) {
      moments.Add(block);
    }
  });
  moments.gap.AddZeros(pass.zeros);
  return moments;
}

// A percentile of either distribution as a rank among the positive gaps.
struct Target {
  std::uint64_t rank = 0;
  bool is_rate = false;
  std::size_t percentile = 0;
};

std::vector<Target> SortedTargets(std::uint64_t positive, std::uint64_t zeros) {
  std::vector<Target> targets;
  for (std::size_t i = 0; i < kPercentiles.size(); ++i) {
    const std::uint64_t rank = RankOf(kPercentiles[i], positive + zeros);
    if (rank >= zeros) {
      targets.push_back({.rank = rank - zeros, .is_rate = false, .percentile = i});
    }
    // Rates ascend as gaps descend.
    const std::uint64_t mirrored = positive - 1 - RankOf(kPercentiles[i], positive);
    targets.push_back({.rank = mirrored, .is_rate = true, .percentile = i});
  }
  std::ranges::sort(targets, {}, &Target::rank);
  return targets;
}

// Extremes and percentiles of both distributions.
template <class Ranks>
void SetRanks(const Ranks& ranks, const GapPass& pass, GapStatistics& out) {
  const std::vector<Target> targets = SortedTargets(pass.positive, pass.zeros);
  std::vector<RankQuery> queries(1);
  queries.reserve(targets.size() + 2);
  for (const Target& target : targets) {
    queries.push_back({.rank = target.rank});
  }
  queries.push_back({.rank = pass.positive - 1});
  ranks.Answer(queries);
  const Extremes extremes = {.min = queries.front().value, .max = queries.back().value};
  Distribution& gap = out.gap_ms;
  Distribution& rate = out.tokens_per_second;
  gap.min = pass.zeros == 0 ? extremes.min : 0.0;
  gap.max = extremes.max;
  rate.min = kRateScale / extremes.max;
  rate.max = kRateScale / extremes.min;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const double value = queries[i + 1].value;
    double Distribution::* const field = kPercentileFields[targets[i].percentile];
    if (targets[i].is_rate) {
      rate.*field = std::clamp(kRateScale / value, rate.min, rate.max);
    } else {
      gap.*field = std::clamp(value, gap.min, gap.max);
    }
  }
}

template <class Gaps>
void SetGapMoments(const Gaps& gaps, GapPass& pass, GapStatistics& out) {
  const std::uint64_t all = pass.positive + pass.zeros;
  pass.moments.gap.AddZeros(pass.zeros);
  if (!pass.moments.gap.Usable(all) || !pass.moments.rate.Usable(pass.positive)) {
    pass.moments = RereadMoments(gaps, pass);
  }
  const Moments& gap = pass.moments.gap;
  const Moments& rate = pass.moments.rate;
  SetMoments(out.gap_ms, gap.Mean(all), gap.Deviation(all));
  SetMoments(out.tokens_per_second, rate.Mean(pass.positive), rate.Deviation(pass.positive));
}

template <class Ranks, class Gaps>
GapStatistics DescribeGapsBy(Ranks ranks, const Gaps& gaps, std::uint64_t zero_gaps) {
  GapPass pass;
  pass.zeros = zero_gaps;
  ReadGaps(gaps, ranks, pass);
  GapStatistics out;
  out.gap_ms.samples = pass.positive + pass.zeros;
  out.tokens_per_second.samples = pass.positive;
  if (pass.positive > 0) {
    SetRanks(ranks, pass, out);
    SetGapMoments(gaps, pass, out);
  }
  return out;
}

// `count`: how many values there are, at least one.
template <class Ranks, class Values>
Distribution DescribeBy(Ranks ranks, const Values& values, std::uint64_t count) {
  Distribution out;
  out.samples = count;
  Moments moments;
  double plain_sum = 0.0;
  ForEachBlock(values, 0.0, [&](const Block& block, std::size_t samples) {
    AddBlock(ranks, block, samples);
    moments.Add(block.values, block.weights);
    double sum = plain_sum;  // one chain of additions, in a register
    for (std::size_t i = 0; i < block.used; ++i) {
      sum += block.values[i];
    }
    plain_sum = sum;
  });
  double mean = moments.Mean(out.samples);
  if (!moments.Usable(out.samples)) {
    moments = Moments(mean);
    ForEachBlock(values, 0.0, [&](const Block& block, std::size_t) {
      moments.Add(block.values, block.weights);
    });
  }
  const double plain_mean = plain_sum / static_cast<double>(out.samples);
  if (std::fabs(plain_mean - mean) <= kPlainSumTolerance * mean) {
    mean = plain_mean;
  }

  std::vector<RankQuery> queries(1);
  queries.reserve(kPercentiles.size() + 2);
  for (const std::uint64_t percentile : kPercentiles) {
    queries.push_back({.rank = RankOf(percentile, out.samples)});
  }
  queries.push_back({.rank = out.samples - 1});
  ranks.Answer(queries);
  out.min = queries.front().value;
  out.max = queries.back().value;
  for (std::size_t i = 0; i < kPercentiles.size(); ++i) {
    out.*kPercentileFields[i] = queries[i + 1].value;
  }
  SetMoments(out, mean, moments.Deviation(out.samples));
  return out;
}

constexpr Extremes kAllValues = {.min = 0.0, .max = kMost};

}  // namespace

Distribution Describe(std::span<const double> values) {
  if (values.empty()) {
    return {};
  }
  return DescribeBy(RankSelector<double>(values, kAllValues, ProbeWindow(values, kAllValues)),
                    values, values.size());
}

Distribution Describe(const LongSequence<double>& values) {
  if (values.InMemory()) {
    return Describe(values.values());
  }
  const LongSamples<double> samples{.parts = {&values, 1}};
  return DescribeBy(RankScan(samples, 0.0), samples, values.size());
}

GapStatistics DescribeGaps(std::span<const sim::GapSample> gaps, std::uint64_t zero_gaps,
                           std::size_t exact_limit) {
  if (gaps.size() > exact_limit) {
    GapStatistics out = DescribeGapsBy(LogSketch(), gaps, zero_gaps);
    out.exact = false;
    return out;
  }
  constexpr Extremes kPositive = {.min = kLeastGap, .max = kMost};
  return DescribeGapsBy(RankSelector<sim::GapSample>(gaps, kPositive, ProbeWindow(gaps, kPositive)),
                        gaps, zero_gaps);
}

GapStatistics DescribeGaps(std::span<const LongSequence<sim::GapSample>> parts,
                           std::uint64_t zero_gaps, std::size_t exact_limit) {
  const LongSamples<sim::GapSample> gaps{.parts = parts};
  std::uint64_t samples = 0;
  for (const LongSequence<sim::GapSample>& part : parts) {
    samples += part.size();
  }
  if (samples > exact_limit) {
    GapStatistics out = DescribeGapsBy(LogSketch(), gaps, zero_gaps);
    out.exact = false;
    return out;
  }
  return DescribeGapsBy(RankScan(gaps, kLeastGap), gaps, zero_gaps);
}

}  // namespace dynosim::report
