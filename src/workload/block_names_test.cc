// SPDX-License-Identifier: Apache-2.0
#include "workload/block_names.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "workload/request.h"

namespace dynosim::workload {
namespace {

using Extents = std::vector<BlockExtent>;
using Values = std::vector<std::uint32_t>;

Extents ExtentsOf(const BlockNames& names, BlockNames::Sequence sequence, std::uint64_t block) {
  Extents out;
  names.Extents(sequence, block, out);
  return out;
}

TEST(BlockNames, TraceBlockGivesOneExtentOfItsEngineBlocks) {
  BlockNames names;
  const auto prompt = names.AppendRuns({}, Values{0, 1}, 512, 1000);
  EXPECT_EQ(ExtentsOf(names, prompt, 64), (Extents{{0, 0, 8}, {1, 0, 7}}));
  EXPECT_EQ(ExtentsOf(names, prompt, 1), (Extents{{0, 0, 512}, {1, 0, 488}}));
  EXPECT_EQ(ExtentsOf(names, prompt, 512), (Extents{{0, 0, 1}}));
}

TEST(BlockNames, BlockLongerThanATraceBlockIsNamedByTheLastOne) {
  BlockNames names;
  const auto prompt = names.AppendRuns({}, Values{5, 6, 7, 8}, 64, 256);
  EXPECT_EQ(ExtentsOf(names, prompt, 128), (Extents{{1, 0, 1}, {3, 0, 1}}));
}

TEST(BlockNames, UnevenSizesPutABlockWhereItsLastTokenIs) {
  BlockNames names;
  const auto prompt = names.AppendRuns({}, Values{0, 1, 2}, 100, 300);
  // Blocks of 64 end at 64 | 128, 192 | 256.
  EXPECT_EQ(ExtentsOf(names, prompt, 64), (Extents{{0, 0, 1}, {1, 0, 2}, {2, 0, 1}}));
}

TEST(BlockNames, EqualPrefixesShareNodesAndDifferentParentsDoNot) {
  BlockNames names;
  const auto a = names.AppendRuns({}, Values{0, 1, 2}, 4, 12);
  const auto b = names.AppendRuns({}, Values{0, 1, 3}, 4, 12);
  const auto c = names.AppendRuns({}, Values{1, 2}, 4, 8);
  EXPECT_EQ(names.AppendRuns({}, Values{0, 1, 2}, 4, 12), a);
  EXPECT_EQ(ExtentsOf(names, b, 4), (Extents{{0, 0, 1}, {1, 0, 1}, {3, 0, 1}}));
  EXPECT_EQ(ExtentsOf(names, c, 4), (Extents{{4, 0, 1}, {5, 0, 1}}));
  EXPECT_EQ(names.size(), 6U);
}

TEST(BlockNames, EqualNeighboursAreOneRunHoweverTheyWereWritten) {
  BlockNames names;
  const auto twice = names.AppendRuns({}, Values{7, 7}, 4, 8);
  EXPECT_EQ(names.Append(names.Append({}, 7, 3), 7, 5), twice);
  EXPECT_EQ(names.size(), 1U);
  EXPECT_EQ(ExtentsOf(names, twice, 4), (Extents{{0, 0, 2}}));
}

TEST(BlockNames, RunsThatPartAtDifferentLengthsAreDifferent) {
  BlockNames names;
  const auto a = names.Append(names.Append({}, 1, 4), 2, 4);
  const auto b = names.Append(names.Append({}, 1, 8), 2, 4);
  EXPECT_NE(a.node, b.node);
  EXPECT_EQ(ExtentsOf(names, b, 4), (Extents{{0, 0, 2}, {b.node, 0, 1}}));
}

TEST(BlockNames, PrivateRunsHaveTheirOwnersNumber) {
  BlockNames names(3);
  const auto prompt = names.Append({}, 9, 4);
  const auto generated = names.AppendPrivate(prompt, 2, 6);
  const auto next = names.Append(generated, 9, 2);
  EXPECT_EQ(ExtentsOf(names, next, 4), (Extents{{3, 0, 1}, {2, 0, 1}, {4, 0, 1}}));
  EXPECT_EQ(names.AppendPrivate(prompt, 1, 0), prompt);
}

TEST(BlockNames, HugeLengthsNeedNoMemory) {
  BlockNames names;
  const auto prompt = names.Append({}, 0, std::uint64_t{1} << 48);
  const Extents extents = ExtentsOf(names, prompt, 1);
  ASSERT_EQ(extents.size(), 1U);
  EXPECT_EQ(extents[0].count, kEndless - 1);
}

TEST(BlockNames, SparseValuesAreFoundAgain) {
  BlockNames names;
  const auto a = names.Append({}, 4000000000U, 4);
  const auto b = names.Append({}, 5, 4);
  EXPECT_EQ(names.Append({}, 4000000000U, 4), a);
  EXPECT_EQ(names.Append({}, 5, 4), b);
  for (std::uint32_t i = 0; i < 100000; ++i) {
    names.Append({}, 3999000000U + i, 4);
  }
  EXPECT_EQ(names.Append({}, 4000000000U, 4), a);
  EXPECT_EQ(names.size(), 100002U);
}

TEST(BlockNames, TokensAreTheValuesOfTheRuns) {
  BlockNames names(1);
  auto sequence = names.AppendRuns({}, Values{4, 5}, 3, 5);
  sequence = names.AppendPrivate(sequence, 0, 2);
  Values tokens;
  names.Tokens(names.Append(sequence, 6, 1), tokens);
  EXPECT_EQ(tokens, (Values{4, 4, 4, 5, 5, 2515880452U, 3600266899U, 6}));
}

TEST(IdNumbers, NumbersFollowFirstSightWhateverTheIdsAre) {
  IdNumbers numbers;
  EXPECT_EQ(numbers.Number(~std::uint64_t{0}), 0U);
  EXPECT_EQ(numbers.Number(70000), 1U);
  EXPECT_EQ(numbers.Number(3), 2U);
  EXPECT_EQ(numbers.Number(70000), 1U);
  // Once more ids are known, 80000 would index the array; what was seen before keeps its number.
  EXPECT_EQ(numbers.Number(80000), 3U);
  for (std::uint64_t id = 100; id < 30100; ++id) {
    numbers.Number(id);
  }
  EXPECT_EQ(numbers.size(), 30004U);
  EXPECT_EQ(numbers.Number(90000), 30004U);
  EXPECT_EQ(numbers.Number(80000), 3U);
  EXPECT_EQ(numbers.Number(70000), 1U);
  EXPECT_EQ(numbers.Number(~std::uint64_t{0}), 0U);
}

TEST(IdNumbers, ManyIdsGetTheNumbersThatTheyWouldGetOneByOne) {
  IdNumbers one, many;
  // In order with repetitions, then a gap, an id far away, and back.
  const std::vector<std::vector<std::uint64_t>> lists = {
      {0, 1, 2}, {0, 1, 3}, {}, {2, 4, 6, 5}, {std::uint64_t{1} << 40, 5, 7}, {6, 0}};
  for (const std::vector<std::uint64_t>& ids : lists) {
    Values numbers(ids.size());
    ASSERT_TRUE(many.Number(ids, numbers));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(numbers[i], one.Number(ids[i]));
    }
    EXPECT_EQ(many.size(), one.size());
  }
}

TEST(BlockNames, RunsAtOnceAreTheRunsOneByOne) {
  BlockNames at_once, one_by_one;
  const std::vector<Values> prompts = {{1, 2, 3}, {1, 2, 4},   {1, 1, 2, 2},  {2, 1, 2, 3},
                                       {1, 2, 3}, {900000, 1}, {1, 900000, 2}};
  for (const Values& values : prompts) {
    for (const std::uint64_t count : {0U, 3U, 8U, 10U, 100U}) {
      BlockNames::Sequence expected;
      for (const std::uint32_t value : values) {
        expected =
            one_by_one.Append(expected, value, std::min<std::uint64_t>(4, count - expected.tokens));
      }
      EXPECT_EQ(at_once.AppendRuns({}, values, 4, count), expected);
    }
  }
  EXPECT_EQ(at_once.size(), one_by_one.size());
}

}  // namespace
}  // namespace dynosim::workload
