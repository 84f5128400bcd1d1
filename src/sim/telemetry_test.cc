// SPDX-License-Identifier: Apache-2.0
// A sampler that keeps a bounded number of samples doubles its interval instead of growing.
#include "sim/telemetry.h"

#include <gtest/gtest.h>

#include "sim/outcome.h"

namespace dynosim::sim {
namespace {

TEST(TelemetrySampler, DropsEverySecondSampleWhenThereAreTooMany) {
  TelemetrySampler sampler(1.0, 5);
  sampler.Take(TelemetrySample::Kind::kBaseline, 0.0);
  while (sampler.NextMs() <= 100.0) {
    sampler.Take(TelemetrySample::Kind::kPeriodic, sampler.NextMs());
  }
  // 0..4 became 0 2 4, then 0 4 8, 0 8 16, 0 16 32, 0 32 64 and goes on with an interval of 32.
  ASSERT_EQ(sampler.samples().size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(sampler.samples()[i].sampled_at_ms, 32.0 * static_cast<double>(i));
    EXPECT_EQ(sampler.samples()[i].ordinal, i);
  }
  EXPECT_EQ(sampler.NextMs(), 128.0);
}

TEST(TelemetrySampler, KeepsEverySampleWithoutABound) {
  TelemetrySampler sampler(1.0);
  sampler.Take(TelemetrySample::Kind::kBaseline, 0.0);
  while (sampler.NextMs() <= 100.0) {
    sampler.Take(TelemetrySample::Kind::kPeriodic, sampler.NextMs());
  }
  EXPECT_EQ(sampler.samples().size(), 101U);
}

}  // namespace
}  // namespace dynosim::sim
