// SPDX-License-Identifier: Apache-2.0
// The fast path and the plain pass-by-pass engine must give the same report, byte for byte, and two
// runs of one case as well.
#include <cstdint>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "base/cases_for_test.h"
#include "random_cases.h"

namespace dynosim::testing {
namespace {

// The first line in which two texts differ; a full diff of two reports takes minutes.
std::string FirstDifference(const std::string& a, const std::string& b) {
  std::istringstream left(a);
  std::istringstream right(b);
  std::string x;
  std::string y;
  for (int line = 1; std::getline(left, x) && std::getline(right, y); ++line) {
    if (x != y) {
      return "line " + std::to_string(line) + ": " + x + " against " + y;
    }
  }
  return a == b ? "" : "one text is longer";
}

class FastPath : public ::testing::TestWithParam<std::string> {};

TEST_P(FastPath, EqualsPassByPassOnEveryLeafOfRandomTightCases) {
  for (std::uint64_t seed = 1; seed <= Cases(700); ++seed) {
    const RandomCase c = MakeRandomCase(seed, GetParam());
    ASSERT_EQ(FirstDifference(ReportOf(c, false), ReportOf(c, true)), "") << "seed " << seed << "\n"
                                                                          << c.engine << "\n"
                                                                          << c.trace;
  }
}

TEST_P(FastPath, EqualsPassByPassBehindAKvRouter) {
  for (std::uint64_t seed = 5000; seed < 5000 + Cases(200); ++seed) {
    const RandomCase c = MakeRoutedCase(seed, GetParam());
    ASSERT_EQ(FirstDifference(ReportOf(c, false), ReportOf(c, true)), "") << "seed " << seed << "\n"
                                                                          << c.engine << "\n"
                                                                          << c.trace;
  }
}

TEST_P(FastPath, GivesTheSameBytesOnEveryRun) {
  for (std::uint64_t seed = 2000; seed <= 2000 + Cases(100); ++seed) {
    const RandomCase c = MakeRandomCase(seed, GetParam());
    ASSERT_EQ(FirstDifference(ReportOf(c, false), ReportOf(c, false)), "") << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, FastPath,
                         ::testing::Values("vllm", "trtllm", "sglang", "vllm_pools",
                                           "sglang_pools"),
                         [](const auto& backend) { return backend.param; });

}  // namespace
}  // namespace dynosim::testing
