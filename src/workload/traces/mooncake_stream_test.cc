// SPDX-License-Identifier: Apache-2.0
// A trace that is streamed says the same as one that is read whole, and holds no more than a cache.
#include "workload/traces/mooncake_stream.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "workload/block_names.h"
#include "workload/fading_names.h"
#include "workload/request.h"
#include "workload/source.h"
#include "workload/trace_table.h"
#include "workload/trace_test_case.h"

namespace dynosim::workload {
namespace {

class MooncakeStreamTest : public TraceTestCase {
 protected:
  MooncakeStreamTest() : TraceTestCase("mooncake") { spec_.trace->block_size = 4; }

  std::unique_ptr<RequestSource> Stream(std::string_view text, std::size_t prefixes = 8) {
    Write(file_, text);
    spec_.trace->stream_from_bytes = 0;
    spec_.trace->streamed_prefixes = prefixes;
    return StreamMooncake(spec_, *spec_.trace, oddities_);
  }
  bool Streams(std::string_view text) { return Stream(text) != nullptr; }

  TraceOddities oddities_;
};

std::string Row(double timestamp, std::uint64_t input, const std::string& ids,
                const std::string& more = "") {
  return fmt::format(R"({{"timestamp":{},"input_length":{},"output_length":2,"hash_ids":[{}]{}}})"
                     "\n",
                     timestamp, input, ids, more);
}

TEST_F(MooncakeStreamTest, RowsComeAsTheClockReachesThem) {
  const auto source = Stream(Row(100, 8, "1,2") + "\n" + Row(100, 5, "1,3") + Row(250, 4, "9"));
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->RequestCount(), 3U);
  EXPECT_EQ(source->NextReadyMs(), 0.0);
  Request request;
  ASSERT_TRUE(source->Release(0.0, request));
  EXPECT_EQ(request.id, 0U);
  EXPECT_EQ(request.prompt_tokens, 8U);
  ASSERT_TRUE(source->Release(0.0, request));
  EXPECT_EQ(request.prompt_tokens, 5U);
  EXPECT_EQ(request.output_tokens, 2U);
  EXPECT_EQ(request.session, kNone);
  EXPECT_FALSE(source->Release(149.0, request));
  EXPECT_EQ(source->NextReadyMs(), 150.0);
  EXPECT_FALSE(source->Exhausted());
  ASSERT_TRUE(source->Release(150.0, request));
  EXPECT_EQ(request.arrival_ms, 150.0);
  EXPECT_TRUE(source->Exhausted());
  EXPECT_EQ(source->NextReadyMs(), std::nullopt);
}

TEST_F(MooncakeStreamTest, OddRowsAreNotedAsWhenReadWhole) {
  ASSERT_TRUE(Streams(Row(-5, 8, "1,2,3") + Row(1e9, 4, "1")));
  EXPECT_EQ(oddities_.negative.first_line, 1U);
  EXPECT_EQ(oddities_.surplus_ids.count, 1U);
  EXPECT_EQ(oddities_.long_gap.first_line, 2U);
}

TEST_F(MooncakeStreamTest, WhatIsNotPlainAndInOrderIsReadWhole) {
  const std::string good = Row(0, 8, "1,2");
  EXPECT_TRUE(Streams(good));
  EXPECT_FALSE(Streams(Row(10, 4, "1") + good));                                  // out of order
  EXPECT_FALSE(Streams(good + Row(10, 4, "1", R"(,"session_id":"a")")));          // a session
  EXPECT_FALSE(Streams(good + Row(10, 4, "1", R"(,"output_token_ids":[1,2])")));  // given output
  EXPECT_FALSE(Streams(good + Row(10, 4, "1", R"(,"delay":3)")));
  EXPECT_FALSE(Streams(good + Row(10, 5, "1")));                          // too few ids
  EXPECT_FALSE(Streams(good + "{"));                                      // not JSON
  EXPECT_FALSE(Streams(good + R"({"output_length":1,"hash_ids":[1]})"));  // no timestamp
  EXPECT_FALSE(Streams(""));
  spec_.replay_concurrency = 1;
  EXPECT_FALSE(Streams(good));
  spec_.replay_concurrency.reset();
  Write(file_, good);
  spec_.trace->stream_from_bytes = good.size() + 1;
  EXPECT_EQ(StreamMooncake(spec_, *spec_.trace, oddities_), nullptr);
}

TEST_F(MooncakeStreamTest, RowOutOfOrderGivesTheSameAsReadingWhole) {
  spec_.trace->stream_from_bytes = 0;
  Load(Row(100, 8, "1,2") + Row(0, 4, "1"));
  EXPECT_EQ(Release(0.0), std::vector<std::string>{"1"});
  EXPECT_EQ(Release(100.0), std::vector<std::string>{"0"});
  EXPECT_EQ(warnings_.size(), 1U);
}

TEST_F(MooncakeStreamTest, QueueHintsReachTheRequest) {
  const auto source =
      Stream(Row(0, 4, "1", R"(,"priority":-3,"strict_priority":7,"policy_class":"gold")"));
  ASSERT_NE(source, nullptr);
  Request request;
  ASSERT_TRUE(source->Release(0.0, request));
  EXPECT_EQ(request.priority, -3);
  EXPECT_EQ(request.strict_priority, 7U);
  EXPECT_EQ(source->PolicyClassName(request.policy_class), "gold");
}

TEST_F(MooncakeStreamTest, FileThatShrinksDuringTheRunIsAProblem) {
  std::string text;
  for (int i = 0; i < 60'000; ++i) {
    text += Row(i, 4, std::to_string(i));
  }
  const auto source = Stream(text);
  ASSERT_NE(source, nullptr);
  Write(file_, "");
  Request request;
  while (source->Release(1e9, request)) {
  }
  EXPECT_TRUE(source->Exhausted());
  ASSERT_NE(source->Problem(), nullptr);
  EXPECT_NE(source->Problem()->Text().find("changed while it was replayed"), std::string::npos);
}

struct Held {
  std::vector<std::uint64_t> ids;
  BlockNames::Sequence sequence;
};

using NamedBlocks = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

NamedBlocks BlocksOf(const FadingNames& names, const Held& held) {
  std::vector<BlockExtent> extents;
  names.Extents(held.sequence, 4, extents);
  NamedBlocks blocks;
  for (const BlockExtent& extent : extents) {
    for (std::uint32_t i = 0; i < extent.count; ++i) {
      blocks.emplace_back(extent.group, extent.first + i);
    }
  }
  return blocks;
}

// Blocks whose whole prefix both have; nothing if their names say otherwise.
std::optional<std::size_t> SharedBlocks(const FadingNames& names, const Held& a, const Held& b) {
  const NamedBlocks left = BlocksOf(names, a);
  const NamedBlocks right = BlocksOf(names, b);
  std::size_t shared = 0;
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    const bool equal = shared == i && a.ids[i] == b.ids[i];
    if ((left[i] == right[i]) != equal) {
      return std::nullopt;
    }
    shared += equal ? 1 : 0;
  }
  return shared;
}

// Follows random rows and holds the names of the last few prompts, as a cache would: as long as a
// prefix is held, equal prefixes have equal names, and different ones different names.
TEST_F(MooncakeStreamTest, NamesOfHeldPrefixesStayWhileOthersAreForgotten) {
  ChaCha12 random(7);
  FadingNames names(64);
  std::deque<Held> held;
  std::size_t most = 0;
  std::size_t shared = 0;
  for (int row = 0; row < 20'000; ++row) {
    Held next;
    const std::uint32_t length = 1 + random.NextBelow(6);
    for (std::uint32_t i = 0; i < length; ++i) {
      next.ids.push_back(random.NextBelow(3) == 0 ? 1000 + static_cast<std::uint64_t>(row)
                                                  : random.NextBelow(4));
    }
    next.sequence = names.Prompt(next.ids, 4, 4 * next.ids.size());
    for (const Held& other : held) {
      const std::optional<std::size_t> same = SharedBlocks(names, next, other);
      ASSERT_TRUE(same) << "row " << row;
      shared += *same;
    }
    held.push_back(std::move(next));
    if (held.size() > 8) {
      held.pop_front();
    }
    if (names.WantsHeld()) {
      names.BeginForget();
      for (const Held& one : held) {
        names.Keep(one.sequence.node);
      }
      names.EndForget();
    }
    most = std::max(most, names.size());
  }
  EXPECT_LE(most, 128U);
  EXPECT_GT(shared, 10'000U);
}

// The proof that a run streams: what the source holds does not grow with the rows.
TEST_F(MooncakeStreamTest, SourceForgetsWhatNobodyHolds) {
  std::string text;
  for (int i = 0; i < 5'000; ++i) {
    text += Row(i, 8, fmt::format("7,{}", 100 + i));
  }
  const auto source = Stream(text, 16);
  ASSERT_NE(source, nullptr);
  Request request;
  std::vector<BlockExtent> blocks;
  std::uint32_t largest = 0;
  std::size_t asked = 0;
  while (source->Release(1e9, request)) {
    source->Blocks(request.id, 4, blocks);
    ASSERT_EQ(blocks.size(), 3U);
    EXPECT_EQ(blocks[0].group, 0U);  // the common first block keeps its name
    largest = std::max(largest, blocks[1].group);
    if (source->WantsHeldGroups()) {
      ++asked;
      source->OnHeldGroups(std::vector<std::uint32_t>{0});
    }
    source->OnTerminal(request.id, 1e9, TerminalStatus::kCompleted, 2);
  }
  EXPECT_LT(largest, 20U);
  EXPECT_GT(asked, 300U);
}

}  // namespace
}  // namespace dynosim::workload
