// SPDX-License-Identifier: Apache-2.0
#include "router/load_tracker.h"

#include <cstdint>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "router/presence_index.h"
#include "workload/request.h"

namespace dynosim::router {
namespace {

using workload::BlockExtent;

TrackedRequest Request(std::vector<BlockExtent> extents, std::uint64_t blocks) {
  TrackedRequest request;
  request.full_blocks = blocks;
  request.extents = std::move(extents);
  return request;
}

TEST(LoadTracker, SharedPrefixBlocksCountOnceUntilTheLastRequestLeaves) {
  LoadTracker load(2, {});
  TrackedRequest a = Request({{1, 0, 8}, {2, 0, 100}}, 10);
  TrackedRequest b = Request({{1, 0, 8}, {3, 0, 100}}, 12);
  load.Add(a, 1, 640);
  EXPECT_EQ(load.blocks(1), 10U);
  std::vector<PrefixMatch> matches;
  load.MatchTracked(b, matches);
  ASSERT_EQ(matches.size(), 1U);
  EXPECT_EQ(matches[0].target, 1U);
  EXPECT_EQ(matches[0].blocks, 8U);
  load.Add(b, 1, 100);
  EXPECT_EQ(load.blocks(1), 14U);
  EXPECT_EQ(load.prefill_tokens(1), 740U);
  EXPECT_EQ(load.LeastPrefillTokens(), 0U);
  load.DropPrefill(a);
  load.DropPrefill(a);
  EXPECT_EQ(load.prefill_tokens(1), 100U);
  load.Remove(a);
  EXPECT_EQ(load.blocks(1), 12U);
  EXPECT_EQ(load.requests(1), 1U);
  load.Remove(b);
  EXPECT_EQ(load.blocks(1), 0U);
  EXPECT_EQ(load.prefill_tokens(1), 0U);
}

TEST(LoadTracker, WithoutReuseEveryRequestCountsInFull) {
  LoadTracker load(1, {.share_blocks = false});
  TrackedRequest a = Request({}, 10);
  TrackedRequest b = Request({}, 10);
  load.Add(a, 0, 1);
  load.Add(b, 0, 1);
  EXPECT_EQ(load.blocks(0), 20U);
  load.Remove(a);
  EXPECT_EQ(load.blocks(0), 10U);
}

TEST(LoadTracker, WithoutTrackingNothingCountsButRequests) {
  LoadTracker load(1, {.blocks = false, .prefill_tokens = false});
  TrackedRequest a = Request({{1, 0, 8}}, 8);
  load.Add(a, 0, 512);
  EXPECT_EQ(load.blocks(0), 0U);
  EXPECT_EQ(load.prefill_tokens(0), 0U);
  EXPECT_EQ(load.requests(0), 1U);
}

TEST(LoadTracker, BlocksAreThoseOfACountPerTargetAndName) {
  ChaCha12 random(7);
  constexpr std::uint32_t kTargets = 5;
  LoadTracker load(kTargets, {});
  std::vector<std::map<std::uint64_t, int>> counts(kTargets);
  std::vector<TrackedRequest> active;
  const auto count = [&](const TrackedRequest& r, std::uint32_t target, int change) {
    std::uint64_t left = r.full_blocks;
    for (const BlockExtent& e : r.extents) {
      for (std::uint32_t i = 0; i < e.count && left > 0; ++i, --left) {
        const std::uint64_t name = (std::uint64_t{e.group} << 32U) | (e.first + i);
        counts[target][name] += change;
        if (counts[target][name] == 0) {
          counts[target].erase(name);
        }
      }
    }
  };
  for (int step = 0; step < 5000; ++step) {
    if (active.empty() || random.NextBelow(2) == 0) {
      const std::uint32_t family = random.NextBelow(3);
      const std::uint32_t shared = random.NextBelow(12) + 1;
      const std::uint32_t own = 10 + 20 * family + shared;
      TrackedRequest r = Request({{family, 0, shared}, {own, 0, 30}}, 0);
      r.full_blocks = random.NextBelow(20);
      const std::uint32_t target = random.NextBelow(kTargets);
      load.Add(r, target, 1);
      count(r, target, 1);
      active.push_back(r);
    } else {
      const std::uint32_t i = random.NextBelow(static_cast<std::uint32_t>(active.size()));
      count(active[i], active[i].target, -1);
      load.Remove(active[i]);
      active.erase(active.begin() + i);
    }
    for (std::uint32_t t = 0; t < kTargets; ++t) {
      ASSERT_EQ(load.blocks(t), counts[t].size()) << "step " << step;
    }
  }
}

}  // namespace
}  // namespace dynosim::router
