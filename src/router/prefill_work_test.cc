// SPDX-License-Identifier: Apache-2.0
// Prompt tokens that count down, with figures worked out by hand.
#include "router/prefill_work.h"

#include <cstdint>
#include <optional>

#include <gtest/gtest.h>

namespace dynosim::router {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

TEST(PrefillWork, TheOldestCountsDownInWholeTokens) {
  PrefillWork work;
  EXPECT_EQ(work.Tokens(5 * kMs), 0U);
  work.Add(1000, 30 * kMs, 10 * kMs);
  work.Add(500, 20 * kMs, 15 * kMs);
  EXPECT_EQ(work.Tokens(10 * kMs), 1500U);
  // A third of a millisecond of 30: 11.1 tokens, of which 11 are done.
  EXPECT_EQ(work.Tokens(10 * kMs + kMs / 3), 1489U);
  EXPECT_EQ(work.Tokens(40 * kMs), 500U);
}

TEST(PrefillWork, WhatIsLateSpillsOverTheOthersButNotBelowNothing) {
  PrefillWork work;
  work.Add(1000, 30 * kMs, 0);
  work.Add(500, 20 * kMs, 0);
  // 36 of 30 ms at 1000 tokens: 1200.
  EXPECT_EQ(work.Tokens(36 * kMs), 300U);
  EXPECT_EQ(work.Tokens(900 * kMs), 0U);
}

TEST(PrefillWork, TheNextOneBeginsWhenTheOldestLeaves) {
  PrefillWork work;
  const auto first = work.Add(1000, 30 * kMs, 0);
  work.Add(500, 20 * kMs, 0);
  work.Drop(first, 25 * kMs);
  EXPECT_EQ(work.Tokens(25 * kMs), 500U);
  EXPECT_EQ(work.Tokens(29 * kMs), 400U);
}

TEST(PrefillWork, AnotherOneMayLeaveFirst) {
  PrefillWork work;
  work.Add(1000, 30 * kMs, 0);
  const auto second = work.Add(500, 20 * kMs, 0);
  work.Drop(second, 15 * kMs);
  EXPECT_EQ(work.Tokens(15 * kMs), 500U);
}

TEST(PrefillWork, AnUnpredictedOneKeepsTheCountDownToTheOldest) {
  PrefillWork work;
  const auto first = work.Add(1000, 30 * kMs, 0);
  const auto second = work.Add(500, std::nullopt, 0);
  // 1000 * (1 - 7/30) = 766.67, rounded up.
  EXPECT_EQ(work.Tokens(7 * kMs), 1267U);
  EXPECT_EQ(work.Tokens(90 * kMs), 500U);
  work.Drop(first, 90 * kMs);
  EXPECT_EQ(work.Tokens(500 * kMs), 500U);
  work.Drop(second, 501 * kMs);
  EXPECT_EQ(work.Tokens(501 * kMs), 0U);
}

TEST(PrefillWork, WithoutAnyDurationTheOldestIsDone) {
  PrefillWork work;
  work.Add(1000, 0, 0);
  work.Add(500, 20 * kMs, 0);
  EXPECT_EQ(work.Tokens(0), 500U);
}

}  // namespace
}  // namespace dynosim::router
