// SPDX-License-Identifier: Apache-2.0
#include "live/live_request.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace dynosim::live {
namespace {

TEST(LiveRequest, TokensAndBlockNamesAreAFunctionOfTheRequest) {
  LiveRequest request;
  request.prompt = {1, 2, 3, 4, 5};
  request.output_tokens = 4;
  request.output.seed = 9;
  request.NameBlocks(4, 1000);
  ASSERT_EQ(request.blocks.size(), 2U);
  EXPECT_EQ(request.blocks[0], 14643705804678351452ULL);  // of the tokens 1, 2, 3, 4
  LiveRequest next;                                       // a turn that repeats prompt and answer
  for (std::uint64_t i = 0; i < 9; ++i) {
    next.prompt.push_back(request.TokenAt(i));
  }
  next.NameBlocks(4, 1000);
  EXPECT_EQ(next.blocks, request.blocks);
  next.salt = 7;
  next.NameBlocks(4, 1000);
  EXPECT_NE(next.blocks[0], request.blocks[0]);
}

TEST(OutputPlan, ReasoningMarkersStandAtBothEndsOfTheirPart) {
  OutputPlan plan;
  plan.reasoning_tokens = 3;
  plan.reasoning_start = 7;
  plan.reasoning_end = 8;
  EXPECT_EQ(plan.Token(0), 7U);
  EXPECT_GE(plan.Token(1), kFirstOutputToken);
  EXPECT_EQ(plan.Token(2), 8U);
  EXPECT_GE(plan.Token(3), kFirstOutputToken);
}

}  // namespace
}  // namespace dynosim::live
