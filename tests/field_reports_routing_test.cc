// SPDX-License-Identifier: Apache-2.0
// Routing that users of serving systems found wrong, kind by kind: one worker that gets all, ties
// that come out differently on every run, caches that the router does not see or sees too early,
// and requests that wait for ever.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/random.h"
#include "field_replay.h"

namespace dynosim::testing {
namespace {

constexpr const char* kWorker = "decode_worker_idx";
constexpr const char* kSelected = "selected_overlap_blocks";
constexpr const char* kRegret = "overlap_regret_blocks";

const std::vector<std::string> kBurst = {"0/64/20[1]", "0/64/20[2]", "0/64/20[3]",
                                         "0/64/20[4]", "0/64/20[5]", "0/64/20[6]"};

std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(word);
  }
  return words;
}

TEST(RoutingReports, AColdBurstIsSharedEvenly) {
  for (const std::string mode : {"round_robin", "kv_router", "least_loaded"}) {
    const FieldResult result =
        Replayed(FieldReplay{.rows = kBurst, .workers = "3", .router_mode = mode});
    ASSERT_EQ(result.error, "") << mode;
    std::vector<std::string> workers = Words(result.Of(kWorker));
    std::ranges::sort(workers);
    EXPECT_EQ(workers, (std::vector<std::string>{"0", "0", "1", "1", "2", "2"})) << mode;
  }
}

TEST(RoutingReports, ASeedAlwaysGivesTheSameTargetsAndSeedsDiffer) {
  std::set<std::string> maps;
  for (int seed = 0; seed < 12; ++seed) {
    const FieldReplay replay{.rows = kBurst,
                             .workers = "3",
                             .router_mode = "kv_router",
                             .router_seed = std::to_string(seed)};
    const std::string map = Replayed(replay).Of(kWorker);
    EXPECT_EQ(Replayed(replay).Of(kWorker), map) << seed;
    maps.insert(map);
  }
  EXPECT_GT(maps.size(), 6U);
}

TEST(RoutingReports, RowsWithEqualArrivalKeepTheirOrderOnEveryRun) {
  for (const std::string mode : {"kv_router", "random", "power_of_two"}) {
    const FieldReplay replay{.rows = {"0/64/2[1]", "0/128/3[2 3]", "0/192/4[4 5 6]"},
                             .workers = "2",
                             .router_mode = mode};
    const FieldResult result = Replayed(replay);
    EXPECT_EQ(result.Of("input_length"), "64 128 192") << mode;
    EXPECT_EQ(DumpJson(*Replayed(replay).report.Find("per_request")),
              DumpJson(*result.report.Find("per_request")))
        << mode;
  }
}

// The first prompt ends at 12: what it stored is known from then on, not before.
TEST(RoutingReports, ACacheIsSeenWhenThePassThatFilledItHasEnded) {
  const std::vector<std::string> rows = {"0/256/1[1 2 3 4]", "9.99/256/1[1 2 3 4]",
                                         "10/256/1[1 2 3 4]"};
  const FieldResult now =
      Replayed(FieldReplay{.rows = rows, .workers = "2", .router_mode = "kv_router"});
  ASSERT_EQ(now.error, "");
  EXPECT_EQ(now.OfRouting(kSelected), "0 0 4");
  const FieldResult later = Replayed(FieldReplay{
      .rows = rows, .workers = "2", .router_mode = "kv_router", .kv_event_lag_ms = "0.5"});
  EXPECT_EQ(later.OfRouting(kSelected), "0 0 0");
  const FieldResult then = Replayed(FieldReplay{.rows = {"0/256/1[1 2 3 4]", "10.5/256/1[1 2 3 4]"},
                                                .workers = "2",
                                                .router_mode = "kv_router",
                                                .kv_event_lag_ms = "0.5"});
  EXPECT_EQ(then.OfRouting(kSelected), "0 4");
}

TEST(RoutingReports, TheSamePrefixGoesToTheWorkerThatHoldsIt) {
  const FieldResult result =
      Replayed(FieldReplay{.rows = {"0/256/1[1 2 3 4]", "0/256/1[5 6 7 8]", "100/256/1[1 2 3 9]",
                                    "200/256/1[5 6 7 9]", "300/256/1[1 2 3 4]"},
                           .workers = "2",
                           .router_mode = "kv_router"});
  ASSERT_EQ(result.error, "");
  const std::vector<std::string> workers = Words(result.Of(kWorker));
  EXPECT_NE(workers[0], workers[1]);
  EXPECT_EQ(workers[2], workers[0]);
  EXPECT_EQ(workers[3], workers[1]);
  EXPECT_EQ(workers[4], workers[0]);
  EXPECT_EQ(result.Of("reused_input_tokens"), "0 0 192 192 192");
  EXPECT_EQ(result.OfRouting(kSelected), "0 0 3 3 4");
  EXPECT_EQ(result.OfRouting(kRegret), "0 0 0 0 0");
}

// A cache that is full of work is no reason to wait there: the other worker computes sooner.
TEST(RoutingReports, AWorkerWithTheCacheButALongLineIsLeftAlone) {
  const FieldResult result =
      Replayed(FieldReplay{.rows = {"0/128/1[1 2]", "100/640/1[1 2 10..17]", "101/192/1[1 2 3]"},
                           .workers = "2",
                           .router_mode = "kv_router"});
  ASSERT_EQ(result.error, "");
  const std::vector<std::string> workers = Words(result.Of(kWorker));
  EXPECT_EQ(workers[1], workers[0]);
  EXPECT_NE(workers[2], workers[0]);
  EXPECT_EQ(result.OfRouting(kRegret), "0 0 2");
}

TEST(RoutingReports, WhatWaitsInTheQueueGoesOnAtTheFirstTokenOfAnother) {
  const FieldResult result =
      Replayed(FieldReplay{.rows = {"0/128/5[1 2]", "1/128/5[3 4]", "2/128/5[5 6]"},
                           .router_mode = "kv_router",
                           .router_config = R"({"router_queue_threshold":0.0})"});
  ASSERT_EQ(result.error, "");
  EXPECT_EQ(result.OfRouting("outcome"), "immediate queued queued");
  // A pass with prefill and decode work takes 12 ms.
  EXPECT_EQ(result.OfRouting("queue_entered_at_ms"), "null 1 2");
  EXPECT_EQ(result.OfRouting("released_at_ms"), "null 10 22");
  EXPECT_EQ(result.Of("completed_requests"), "3");
}

TEST(RoutingReports, ARejectedRequestLetsTheNextOneThrough) {
  const FieldResult result =
      Replayed(FieldReplay{.rows = {"0/1280/2[0..19]", "0/64/2[99]"},
                           .engine = R"("num_gpu_blocks":8)",
                           .router_mode = "kv_router",
                           .router_config = R"({"router_queue_threshold":0.0})"});
  ASSERT_EQ(result.error, "");
  EXPECT_EQ(result.Of("terminal_status"), "rejected completed");
}

TEST(RoutingReports, APoolWithPrefillAndDecodeRoutesBothAndNothingIsLost) {
  const FieldResult result =
      Replayed(FieldReplay{.rows = {"0/192/4[1 2 3]", "50/192/1[1 2 4]", "100/192/4[1 2 3]"},
                           .disaggregated = true,
                           .router_mode = "kv_router"});
  ASSERT_EQ(result.error, "");
  EXPECT_EQ(result.Of("ttft_ms"), "12 12 12");
  EXPECT_EQ(result.Of("reused_input_tokens"), "0 128 128");
  EXPECT_EQ(result.Of("prefill_route_overlap_tokens"), "0 128 192");
  EXPECT_EQ(result.Of("decode_route_overlap_tokens"), "0 0 0");
}

// Requests far apart on one worker with a small pool, which evicts all the time: what the router
// believes is cached is what the engine then reuses, but that one token at least is computed.
TEST(RoutingReports, TheIndexIsWhatTheEngineHasUnderConstantEviction) {
  for (const std::string backend : {"vllm", "trtllm", "sglang"}) {
    ChaCha12 random(11);
    FieldReplay replay{.engine = R"("num_gpu_blocks":40,"backend":")" + backend + '"',
                       .router_mode = "kv_router"};
    std::vector<std::uint64_t> lengths;
    for (int i = 0; i < 600; ++i) {
      const std::uint32_t blocks = 1 + random.NextBelow(20);
      const std::uint32_t shared = random.NextBelow(blocks + 1);
      const std::uint32_t family = random.NextBelow(6);
      lengths.push_back((blocks - 1) * 64 + 1 + random.NextBelow(64));
      std::string ids;
      for (std::uint32_t b = 0; b < blocks; ++b) {
        ids +=
            (b == 0 ? "" : " ") + std::to_string(b < shared ? family * 100 + b : 1000 + i * 50 + b);
      }
      replay.rows.push_back(std::to_string(i * 10000) + "/" + std::to_string(lengths.back()) + "/" +
                            std::to_string(1 + random.NextBelow(200)) + "[" + ids + "]");
    }
    const FieldResult result = Replayed(replay);
    ASSERT_EQ(result.error, "") << backend;
    const std::vector<std::string> reused = Words(result.Of("reused_input_tokens"));
    const std::vector<std::string> overlap = Words(result.OfRouting(kSelected));
    ASSERT_EQ(reused.size(), lengths.size());
    std::uint64_t hits = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const std::uint64_t most = (backend == "trtllm" ? lengths[i] : lengths[i] - 1) / 64;
      const std::uint64_t found = std::stoull(overlap[i]);
      EXPECT_EQ(reused[i], std::to_string(std::min(found, most) * 64)) << backend << " " << i;
      hits += found > 0 ? 1 : 0;
    }
    EXPECT_GT(hits, 100U) << backend;
  }
}

}  // namespace
}  // namespace dynosim::testing
