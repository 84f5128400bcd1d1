// SPDX-License-Identifier: Apache-2.0
#include "router/policy_queue.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "router/policy_profile.h"

namespace dynosim::router {
namespace {

constexpr auto kAlways = [](std::size_t) { return true; };

std::vector<std::uint32_t> PopAll(PolicyQueue& queue) {
  std::vector<std::uint32_t> order;
  while (const auto request = queue.Pop(kAlways)) {
    order.push_back(*request);
  }
  return order;
}

TEST(PolicyQueue, FcfsTakesOneSecondForOnePointOfPriorityAndTheEarlierEntryOnATie) {
  const PolicyProfile profile = SingleClass(QueuePolicy::kFcfs, 0.0);
  PolicyQueue queue(profile, 1);
  queue.Push(0, {.request = 1, .prompt_tokens = 64, .arrival_ms = 0.0});
  queue.Push(0, {.request = 2, .priority = 1, .prompt_tokens = 64, .arrival_ms = 1000.0});
  queue.Push(0, {.request = 3, .priority = 1, .prompt_tokens = 64, .arrival_ms = 999.0});
  queue.Push(0, {.request = 4, .priority = -5, .prompt_tokens = 64, .arrival_ms = 0.0});
  EXPECT_EQ(PopAll(queue), (std::vector<std::uint32_t>{3, 1, 2, 4}));
}

TEST(PolicyQueue, LcfsTakesTheLatestAndStrictPriorityGoesFirst) {
  const PolicyProfile profile = SingleClass(QueuePolicy::kLcfs, 0.0);
  PolicyQueue queue(profile, 1);
  queue.Push(0, {.request = 1, .prompt_tokens = 64, .arrival_ms = 1.0});
  queue.Push(0, {.request = 2, .prompt_tokens = 64, .arrival_ms = 2.0});
  queue.Push(0, {.request = 3, .strict_priority = 1, .prompt_tokens = 64, .arrival_ms = 0.0});
  EXPECT_EQ(PopAll(queue), (std::vector<std::uint32_t>{3, 2, 1}));
}

TEST(PolicyQueue, WsptTakesTheLeastUncachedWork) {
  const PolicyProfile profile = SingleClass(QueuePolicy::kWspt, 0.0);
  PolicyQueue queue(profile, 1);
  queue.Push(0, {.request = 1, .prompt_tokens = 1000, .cached_tokens = 990});
  queue.Push(0, {.request = 2, .prompt_tokens = 100});
  queue.Push(0, {.request = 3, .prompt_tokens = 5});
  queue.Push(0, {.request = 4, .priority = 99, .prompt_tokens = 200});
  EXPECT_EQ(PopAll(queue), (std::vector<std::uint32_t>{4, 3, 1, 2}));
}

PolicyProfile TwoClasses(std::uint64_t first_quantum, std::uint64_t second_quantum) {
  PolicyProfile profile;
  profile.classes = {{.name = "a", .quantum = first_quantum, .busy_tokens = 0},
                     {.name = "b", .quantum = second_quantum, .busy_tokens = 0}};
  profile.is_explicit = {true, true};
  return profile;
}

TEST(PolicyQueue, ClassesShareByTheirQuanta) {
  const PolicyProfile profile = TwoClasses(200, 100);
  PolicyQueue queue(profile, 1);
  for (std::uint32_t i = 0; i < 4; ++i) {
    queue.Push(0, {.request = i, .prompt_tokens = 100});
    queue.Push(1, {.request = 10 + i, .prompt_tokens = 100});
  }
  // Two of the first class for each of the second: its deficit carries one more.
  EXPECT_EQ(PopAll(queue), (std::vector<std::uint32_t>{0, 1, 10, 2, 3, 11, 12, 13}));
}

TEST(PolicyQueue, ACostlyHeadGetsAsManyRoundsAsItNeeds) {
  const PolicyProfile profile = TwoClasses(1, 3);
  PolicyQueue queue(profile, 1);
  queue.Push(0, {.request = 1, .prompt_tokens = 1'000'000});
  queue.Push(1, {.request = 2, .prompt_tokens = 3'000'000});
  EXPECT_EQ(PopAll(queue), (std::vector<std::uint32_t>{1, 2}));
}

TEST(PolicyQueue, AClassThatMayNotDispatchKeepsItsRequests) {
  const PolicyProfile profile = TwoClasses(100, 100);
  PolicyQueue queue(profile, 1);
  queue.Push(0, {.request = 1, .prompt_tokens = 100});
  queue.Push(1, {.request = 2, .prompt_tokens = 100});
  const auto second_only = [](std::size_t number) { return number == 1; };
  EXPECT_EQ(queue.Pop(second_only), std::optional<std::uint32_t>(2));
  EXPECT_EQ(queue.Pop(second_only), std::nullopt);
  EXPECT_EQ(queue.size(), 1U);
  EXPECT_TRUE(queue.Cancel(1));
  EXPECT_FALSE(queue.Cancel(1));
  EXPECT_EQ(queue.size(), 0U);
}

TEST(PolicyQueue, LimitsCountPerTargetAndTheOneThatCrossesIsAccepted) {
  PolicyProfile profile = TwoClasses(1, 1);
  profile.classes[0].prompt_token_limit = 100;
  PolicyQueue queue(profile, 2);
  queue.Push(0, {.request = 1, .prompt_tokens = 199});
  EXPECT_EQ(queue.LimitReached(0), std::nullopt);
  queue.Push(0, {.request = 2, .prompt_tokens = 500});
  EXPECT_EQ(
      queue.LimitReached(0),
      "router policy class \"a\" queue raw_isl_tokens limit reached (current=699, limit=200)");
  EXPECT_EQ(queue.LimitReached(1), std::nullopt);
}

}  // namespace
}  // namespace dynosim::router
