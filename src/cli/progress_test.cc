// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <gtest/gtest.h>

namespace dynosim::cli {
namespace {

TEST(Progress, TheLineNamesVirtualTimeRequestsAndRate) {
  EXPECT_EQ(ProgressText(12345.6, 4096, 12031, 2.0),
            "virtual 12.3 s, 4,096 of 12,031 requests, 2,048 requests/s");
  EXPECT_EQ(ProgressText(0.0, 0, 1'000'000, 0.0), "virtual 0.0 s, 0 of 1,000,000 requests");
  EXPECT_EQ(ProgressText(0.0, 999, 1000, 0.5),
            "virtual 0.0 s, 999 of 1,000 requests, 1,998 requests/s");
}

TEST(Progress, TheLineOfASearchNamesRateAndTimeLeft) {
  EXPECT_EQ(CandidateText(30, 10, 320, 4.0), "30 of 320 candidates, 300 a minute, 58 s left");
  EXPECT_EQ(CandidateText(10, 10, 320, 0.5), "10 of 320 candidates");
}

}  // namespace
}  // namespace dynosim::cli
