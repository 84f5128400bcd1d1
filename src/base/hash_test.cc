// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <array>
#include <cstdint>

#include <gtest/gtest.h>

namespace dynosim {
namespace {

TEST(LocalBlockHash, EqualsKnownValues) {
  const std::array<std::uint32_t, 4> first = {1, 2, 3, 4};
  const std::array<std::uint32_t, 4> second = {5, 6, 7, 8};
  EXPECT_EQ(LocalBlockHash(first), 14643705804678351452U);
  EXPECT_EQ(LocalBlockHash(second), 16777012769546811212U);
}

TEST(SequenceHash, DependsOnTheParentAndOnTheOrder) {
  EXPECT_NE(SequenceHash(1, 2), SequenceHash(2, 1));
  EXPECT_NE(SequenceHash(1, 2), SequenceHash(1, 3));
  // Two 64-bit words little-endian are the same bytes as four tokens.
  const std::array<std::uint32_t, 4> tokens = {1, 0, 2, 0};
  EXPECT_EQ(SequenceHash(1, 2), LocalBlockHash(tokens));
}

TEST(GeneratedToken, EqualsKnownValues) {
  EXPECT_EQ(GeneratedToken(1, 0), 2515880452U);
  EXPECT_EQ(GeneratedToken(1, 1), 3600266899U);
  EXPECT_EQ(GeneratedToken(1, 2), 2716793611U);
  EXPECT_EQ(GeneratedToken(1, 3), 2249174135U);
  EXPECT_EQ(GeneratedToken(2, 0), 1927195132U);
}

}  // namespace
}  // namespace dynosim
