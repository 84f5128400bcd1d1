// SPDX-License-Identifier: Apache-2.0
// Cost of all statistics of 1.4 million weighted gaps, the number a trace of 12,000 requests makes,
// for gaps that are spread, nearly equal, in two clusters, and of few distinct values.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "report/quantiles.h"
#include "sim/outcome.h"

namespace dynosim::report {
namespace {

constexpr std::size_t kSamples = 1'400'000;

enum class Shape : std::uint8_t { kSpread, kNearlyEqual, kTwoClusters, kFewValues };

// Numbers in [0, 1), always the same ones.
class Fractions {
 public:
  double Next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(state_ >> 11U) * 0x1p-53;
  }

 private:
  std::uint64_t state_ = 42;
};

double Gap(Shape shape, Fractions& fractions) {
  const double fraction = fractions.Next();
  switch (shape) {
    case Shape::kSpread:
      return 5.0 + 20.0 * (fraction + fractions.Next());
    case Shape::kNearlyEqual:
      return 2.0 + 1e-11 * fraction;
    case Shape::kTwoClusters:
      return (fractions.Next() < 0.9 ? 2.0 : 12.0) + 1e-11 * fraction;
    case Shape::kFewValues:
      return 6.0 + std::floor(50.0 * fraction);
  }
  return 1.0;
}

void DescribeManyGaps(benchmark::State& state) {
  const auto shape = static_cast<Shape>(state.range(0));
  Fractions fractions;
  std::vector<sim::GapSample> gaps(kSamples);
  for (sim::GapSample& gap : gaps) {
    gap.gap_ms = Gap(shape, fractions);
    gap.weight = 1 + static_cast<std::uint32_t>(60.0 * fractions.Next());
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(DescribeGaps(gaps, 5));
  }
}
BENCHMARK(DescribeManyGaps)->DenseRange(0, 3)->Unit(benchmark::kMillisecond);

void DescribeManyLatencies(benchmark::State& state) {
  Fractions fractions;
  std::vector<double> values(100'000);
  for (double& value : values) {
    value = 100.0 * fractions.Next();
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(Describe(values));
  }
}
BENCHMARK(DescribeManyLatencies)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace dynosim::report
