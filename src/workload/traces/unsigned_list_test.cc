// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/unsigned_list.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace dynosim::workload {
namespace {

using Numbers = std::vector<std::uint64_t>;

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

// The numbers of a list that is the whole text; nothing when it is no such list.
std::optional<Numbers> Read(const std::string& text, std::uint64_t max = kMost) {
  const std::string padded = text + std::string(64, '\0');
  UnsignedList list;
  const char* const end = ReadUnsignedList(padded.data(), max, list);
  if (end == nullptr || static_cast<std::size_t>(end - padded.data()) != text.size()) {
    return std::nullopt;
  }
  return Numbers(list.Values().begin(), list.Values().end());
}

TEST(UnsignedList, NumbersThatCountUpAreReadLikeAllOthers) {
  // Runs that begin at every last digit, of every length up to where a word is too short for them.
  for (std::uint64_t first = 0; first < 10'000'000'000U; first = first * 10 + 7) {
    for (std::uint64_t from = first; from < first + 12; ++from) {
      Numbers expected;
      std::string text = "[";
      for (std::uint64_t i = 0; i < 300; ++i) {
        expected.push_back(from + i + i / 50 * 3);
        text += (i == 0 ? "" : ", ") + std::to_string(expected.back());
      }
      ASSERT_EQ(Read(text + "]"), expected) << from;
    }
  }
}

TEST(UnsignedList, BlanksMayBeAnywhereBetweenNumbers) {
  EXPECT_EQ(Read("[1, 2,  3,\t4,5 , 6, 7 ]"), (Numbers{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(Read("[ ]"), Numbers{});
}

TEST(UnsignedList, WhatOnlyLooksLikeTheNextNumberIsRefused) {
  EXPECT_EQ(Read("[8, 9, :, 11]"), std::nullopt);
  EXPECT_EQ(Read("[18, 19, 1:, 21]"), std::nullopt);
  EXPECT_EQ(Read("[1, 2, ]"), std::nullopt);
  EXPECT_EQ(Read("[1, 2, 3"), std::nullopt);
  EXPECT_EQ(Read("[01, 02]"), std::nullopt);
}

TEST(UnsignedList, TheLargestNumberAllowedHolds) {
  EXPECT_EQ(Read("[4, 5, 6]", 6), (Numbers{4, 5, 6}));
  EXPECT_EQ(Read("[4, 5, 6, 7]", 6), std::nullopt);
  EXPECT_EQ(Read("[18446744073709551615]"), Numbers{kMost});
  EXPECT_EQ(Read("[18446744073709551616]"), std::nullopt);
}

}  // namespace
}  // namespace dynosim::workload
