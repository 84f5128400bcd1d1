// SPDX-License-Identifier: Apache-2.0
// Interpolation on a measured grid, inside and beyond it, and the checks of its arrays.
#include "timing/profile.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace dynosim::timing {
namespace {

Profile Grid() {
  return {.prefill_isl = {10.0, 20.0, 40.0},
          .prefill_ttft_ms = {1.0, 3.0, 4.0},
          .decode_active_kv_tokens = {0.0, 100.0, 200.0},
          .decode_context_length = {0.0, 50.0},
          .decode_itl = {5.0, 6.0, 7.0, 8.0, 9.0, 12.0}};
}

double Prefill(std::uint64_t requests, std::uint64_t tokens) {
  return ProfileTiming(Grid()).PrefillMs(
      {.requests = requests, .mean_new = tokens, .mean_prefix = 0});
}
double Decode(std::uint64_t requests, std::uint64_t context) {
  return ProfileTiming(Grid()).DecodeMs(
      {.requests = requests, .context_tokens = context, .capacity_tokens = 1});
}

TEST(Profile, PrefillIsLinearInTheNewTokensOfThePass) {
  EXPECT_EQ(Prefill(1, 30), 3.5);
  EXPECT_EQ(Prefill(2, 15), 3.5);
  EXPECT_EQ(Prefill(1, 20), 3.0);
  EXPECT_EQ(Prefill(1, 40), 4.0);
}

TEST(Profile, PrefillGoesOnBeyondTheGridButNotBelowZero) {
  EXPECT_EQ(Prefill(1, 60), 5.0);
  EXPECT_EQ(Prefill(1, 8), 0.6);
  EXPECT_EQ(Prefill(1, 1), 0.0);
}

TEST(Profile, DecodeIsBilinearInActiveTokensAndMeanContext) {
  // One request of 31 tokens: active 31, mean 31.
  const double near = (7.0 - 5.0) / 100.0 * 31.0 + 5.0;
  const double far = (8.0 - 6.0) / 100.0 * 31.0 + 6.0;
  EXPECT_EQ(Decode(1, 31), (far - near) / 50.0 * 31.0 + near);
  // Four requests of 150 tokens in all: the mean is floored to 37.
  const double near4 = (9.0 - 7.0) / 100.0 * 50.0 + 7.0;
  const double far4 = (12.0 - 8.0) / 100.0 * 50.0 + 8.0;
  EXPECT_EQ(Decode(4, 150), (far4 - near4) / 50.0 * 37.0 + near4);
}

TEST(Profile, DecodeIsAtLeastOneMillisecond) {
  Profile low = Grid();
  low.decode_itl.assign(6, 0.25);
  const ProfileTiming timing(std::move(low));
  EXPECT_EQ(timing.DecodeMs({.requests = 1, .context_tokens = 31, .capacity_tokens = 1}), 1.0);
}

TEST(Profile, ARunEqualsItsPassesOneByOne) {
  const ProfileTiming timing(Grid());
  std::vector<double> run(100);
  timing.DecodeRunMs({.requests = 3, .context_tokens = 7, .capacity_tokens = 1}, run);
  for (std::size_t i = 0; i < run.size(); ++i) {
    ASSERT_EQ(run[i], Decode(3, 7 + 3 * i));
  }
  EXPECT_FALSE(timing.ConstantDecode());
}

TEST(Profile, UnusableGridsAreRefusedByName) {
  const auto error = [](auto change) {
    Profile profile = Grid();
    change(profile);
    const auto checked = CheckProfile(profile);
    return checked ? "fine" : checked.error().message;
  };
  EXPECT_EQ(error([](Profile&) {}), "fine");
  EXPECT_EQ(error([](Profile& p) { p.prefill_ttft_ms.pop_back(); }),
            "arrays prefill_isl and prefill_ttft_ms must have one length, got 3 and 2");
  EXPECT_EQ(error([](Profile& p) { p.prefill_isl = {10.0, 10.0, 40.0}; }),
            "array prefill_isl must rise strictly (element 1)");
  EXPECT_EQ(error([](Profile& p) { p.decode_context_length = {0.0}; }),
            "array decode_context_length must have at least 2 points");
  EXPECT_EQ(error([](Profile& p) { p.decode_active_kv_tokens = {0.0, 9.0, 8.0}; }),
            "array decode_active_kv_tokens must rise strictly (element 2)");
  EXPECT_EQ(error([](Profile& p) { p.decode_itl.pop_back(); }),
            "array decode_itl must have 6 values, got 5");
}

}  // namespace
}  // namespace dynosim::timing
