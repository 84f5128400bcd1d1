// SPDX-License-Identifier: Apache-2.0
#include "workload/session_queue.h"

#include <cstdint>
#include <optional>

#include <gtest/gtest.h>

namespace dynosim::workload {
namespace {

using Turn = SessionQueue::Turn;

TEST(SessionQueue, OpenLoopFollowsTimeAndKeepsTheOrderOfEqualTimes) {
  SessionQueue queue = SessionQueue::OpenLoop({5.0, 0.0, 5.0, 0.0});
  EXPECT_EQ(queue.NextReadyMs(), 0.0);
  EXPECT_EQ(queue.Pop(9.0), (Turn{0.0, 1, 0}));
  EXPECT_EQ(queue.Pop(9.0), (Turn{0.0, 3, 0}));
  EXPECT_EQ(queue.Pop(4.9), std::nullopt);
  EXPECT_EQ(queue.NextReadyMs(), 5.0);
  EXPECT_EQ(queue.Pop(5.0), (Turn{5.0, 0, 0}));
  EXPECT_EQ(queue.Pop(5.0), (Turn{5.0, 2, 0}));
  EXPECT_EQ(queue.NextReadyMs(), std::nullopt);
  EXPECT_EQ(queue.Pop(9.0), std::nullopt);
}

TEST(SessionQueue, LaterTurnsAndFirstTurnsShareOneOrder) {
  SessionQueue queue = SessionQueue::OpenLoop({0.0, 10.0, 10.0});
  EXPECT_EQ(queue.Pop(0.0), (Turn{0.0, 0, 0}));
  queue.Push({.ready_ms = 10.0, .session = 0, .turn = 1});
  EXPECT_EQ(queue.Pop(10.0), (Turn{10.0, 0, 1}));
  EXPECT_EQ(queue.Pop(10.0), (Turn{10.0, 1, 0}));
  queue.Push({.ready_ms = 10.0, .session = 1, .turn = 1});
  EXPECT_EQ(queue.Pop(10.0), (Turn{10.0, 1, 1}));
  EXPECT_EQ(queue.Pop(10.0), (Turn{10.0, 2, 0}));
}

TEST(SessionQueue, EndOfASessionStartsNothingInAnOpenLoop) {
  SessionQueue queue = SessionQueue::OpenLoop({0.0});
  queue.Pop(0.0);
  queue.EndSession(3.0);
  EXPECT_EQ(queue.NextReadyMs(), std::nullopt);
}

TEST(SessionQueue, CapStartsTheNextSessionWhenOneEnds) {
  SessionQueue queue = SessionQueue::Capped(4, 2);
  EXPECT_EQ(queue.Pop(0.0), (Turn{0.0, 0, 0}));
  EXPECT_EQ(queue.Pop(0.0), (Turn{0.0, 1, 0}));
  EXPECT_EQ(queue.Pop(0.0), std::nullopt);
  // A pause keeps the slot.
  queue.Push({.ready_ms = 30.0, .session = 0, .turn = 1});
  EXPECT_EQ(queue.NextReadyMs(), 30.0);
  queue.EndSession(20.0);
  EXPECT_EQ(queue.NextReadyMs(), 20.0);
  EXPECT_EQ(queue.Pop(20.0), (Turn{20.0, 2, 0}));
  EXPECT_EQ(queue.Pop(30.0), (Turn{30.0, 0, 1}));
  queue.EndSession(40.0);
  EXPECT_EQ(queue.Pop(40.0), (Turn{40.0, 3, 0}));
  queue.EndSession(50.0);
  EXPECT_EQ(queue.NextReadyMs(), std::nullopt);
}

TEST(SessionQueue, SessionThatEndsBeforeAllFirstOnesStartedTakesNoTurnTwice) {
  SessionQueue queue = SessionQueue::Capped(3, 2);
  EXPECT_EQ(queue.Pop(0.0), (Turn{0.0, 0, 0}));
  queue.EndSession(0.0);
  EXPECT_EQ(queue.Pop(0.0), (Turn{0.0, 1, 0}));
  EXPECT_EQ(queue.Pop(0.0), (Turn{0.0, 2, 0}));
  EXPECT_EQ(queue.Pop(0.0), std::nullopt);
}

TEST(SessionQueue, CapAboveTheNumberOfSessionsStartsAll) {
  SessionQueue queue = SessionQueue::Capped(2, ~std::uint64_t{0});
  EXPECT_TRUE(queue.Pop(0.0));
  EXPECT_TRUE(queue.Pop(0.0));
  EXPECT_FALSE(queue.Pop(0.0));
}

}  // namespace
}  // namespace dynosim::workload
