// SPDX-License-Identifier: Apache-2.0
#include "router/approximate_cache.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "kv/events.h"
#include "router/presence_index.h"
#include "workload/request.h"

namespace dynosim::router {
namespace {

using Extents = std::vector<workload::BlockExtent>;

std::uint32_t Held(PresenceIndex& index, std::uint32_t target, const Extents& prompt,
                   std::uint64_t blocks) {
  std::vector<PrefixMatch> matches;
  index.Match(prompt, blocks, matches);
  for (const PrefixMatch& match : matches) {
    if (match.target == target) {
      return match.blocks;
    }
  }
  return 0;
}

TEST(TtlCache, BlocksExpireAfterTheirLastPlacement) {
  PresenceIndex index(2);
  TtlCache cache(index, {.ttl_ms = 100.0});
  const Extents prompt = {{1, 0, 4}, {2, 0, 4}};
  cache.OnPlaced(0, prompt, 6, 0.0);
  cache.OnPlaced(1, prompt, 6, 0.0);
  cache.OnPlaced(0, prompt, 3, 60.0);
  EXPECT_EQ(cache.blocks(), 12U);
  cache.Expire(99.0);
  EXPECT_EQ(Held(index, 0, prompt, 8), 6U);
  cache.Expire(100.0);
  EXPECT_EQ(Held(index, 0, prompt, 8), 3U);
  EXPECT_EQ(Held(index, 1, prompt, 8), 0U);
  cache.Expire(160.0);
  EXPECT_EQ(Held(index, 0, prompt, 8), 0U);
  EXPECT_EQ(cache.blocks(), 0U);
}

TEST(TtlCache, AboveItsSizeTheOldestGoUntilAFifthIsFree) {
  PresenceIndex index(1);
  TtlCache cache(index, {.ttl_ms = 1000.0, .max_blocks = 10});
  cache.OnPlaced(0, Extents{{1, 0, 6}}, 6, 0.0);
  cache.OnPlaced(0, Extents{{2, 0, 4}}, 4, 1.0);
  EXPECT_EQ(cache.blocks(), 10U);
  cache.OnPlaced(0, Extents{{3, 0, 1}}, 1, 2.0);
  EXPECT_EQ(cache.blocks(), 8U);
  EXPECT_EQ(Held(index, 0, {{1, 0, 6}}, 6), 0U);  // its head is gone
  EXPECT_EQ(Held(index, 0, {{2, 0, 4}}, 4), 4U);
  EXPECT_EQ(Held(index, 0, {{3, 0, 1}}, 1), 1U);
}

TEST(LruCache, TheDeepestBlocksOfTheRequestThatLeftFirstGoFirst) {
  PresenceIndex index(1);
  LruCache cache(index, 1, 8);
  const Extents a = {{1, 0, 4}};
  const Extents b = {{2, 0, 4}};
  const Extents c = {{3, 0, 3}};
  cache.OnPlaced(0, a, 4);
  cache.OnPlaced(0, b, 4);
  cache.OnReleased(0, b, 4);
  cache.OnReleased(0, a, 4);
  cache.OnPlaced(0, c, 3);
  EXPECT_EQ(cache.blocks(0), 8U);
  EXPECT_EQ(Held(index, 0, b, 4), 1U);
  EXPECT_EQ(Held(index, 0, a, 4), 4U);
  EXPECT_EQ(Held(index, 0, c, 3), 3U);
}

TEST(LruCache, BlocksOfPlacedRequestsStayUntilTheyLeave) {
  PresenceIndex index(1);
  LruCache cache(index, 1, 4);
  const Extents a = {{1, 0, 4}};
  const Extents b = {{2, 0, 4}};
  cache.OnPlaced(0, a, 4);
  cache.OnPlaced(0, b, 4);
  EXPECT_EQ(cache.blocks(0), 8U);
  cache.OnReleased(0, a, 4);
  EXPECT_EQ(cache.blocks(0), 4U);
  EXPECT_EQ(Held(index, 0, a, 4), 0U);
  EXPECT_EQ(Held(index, 0, b, 4), 4U);
}

TEST(LruCache, ASharedBlockIsIdleOnlyWhenItsLastRequestHasLeft) {
  PresenceIndex index(1);
  LruCache cache(index, 1, 3);
  const Extents shared = {{1, 0, 3}};
  cache.OnPlaced(0, shared, 3);
  cache.OnPlaced(0, shared, 2);
  cache.OnReleased(0, shared, 3);
  cache.OnPlaced(0, Extents{{2, 0, 2}}, 2);
  EXPECT_EQ(Held(index, 0, shared, 3), 2U);
}

}  // namespace
}  // namespace dynosim::router
