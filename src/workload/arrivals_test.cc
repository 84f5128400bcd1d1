// SPDX-License-Identifier: Apache-2.0
#include "workload/arrivals.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace dynosim::workload {
namespace {

std::vector<double> Times(ArrivalProcess process, int count) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i, process.Advance()) {
    times.push_back(process.NextMs());
  }
  return times;
}

TEST(ArrivalProcess, ZeroIntervalSendsEverythingAtOnce) {
  EXPECT_EQ(Times(ArrivalProcess::FixedInterval(0.0), 3), (std::vector<double>{0.0, 0.0, 0.0}));
}

TEST(ArrivalProcess, FixedIntervalGoesThroughTheRateAndAddsUp) {
  const double gap = 1000.0 / (1000.0 / 7.3);
  EXPECT_EQ(Times(ArrivalProcess::FixedInterval(7.3), 4),
            (std::vector<double>{0.0, gap, gap + gap, gap + gap + gap}));
}

TEST(ArrivalProcess, PoissonDrawsNothingForTheFirstArrival) {
  ChaCha12 random(42);
  const double first = -125.0 * std::log(1.0 - random.NextUniform());
  const double second = -125.0 * std::log(1.0 - random.NextUniform());
  EXPECT_EQ(Times(ArrivalProcess::Poisson(8.0, 42), 3),
            (std::vector<double>{0.0, first, first + second}));
}

}  // namespace
}  // namespace dynosim::workload
