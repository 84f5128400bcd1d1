// SPDX-License-Identifier: Apache-2.0
// Choices of the KV router in cases worked out by hand. Blocks have 10 tokens.
#include "router/kv_router.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kv/events.h"
#include "router/config.h"
#include "router/policy_profile.h"
#include "router/router.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::router {
namespace {

using workload::BlockExtent;

// A prompt of group g is blocks (g, 0), (g, 1), ...
class Prompts final : public workload::RequestSource {
 public:
  std::optional<double> NextReadyMs() const override { return std::nullopt; }
  bool Exhausted() const override { return true; }
  bool Release(double, workload::Request&) override { return false; }
  void OnTerminal(std::uint32_t, double, workload::TerminalStatus, std::uint64_t) override {}
  void Blocks(std::uint32_t id, std::uint64_t, std::vector<BlockExtent>& out) const override {
    out = {{groups[id], 0, 1000}};
  }
  std::uint32_t RequestCount() const override { return static_cast<std::uint32_t>(groups.size()); }
  bool SharesGeneratedBlocks() const override { return false; }
  std::string SessionName(std::uint32_t) const override { return ""; }
  std::string_view PolicyClassName(std::uint32_t) const override { return ""; }
  void PromptTokens(std::uint32_t, std::vector<std::uint32_t>&) const override {}
  std::uint32_t OutputToken(std::uint32_t, std::uint64_t) const override { return 0; }

  std::vector<std::uint32_t> groups;  // by request
};

class KvRouterTest : public testing::Test {
 protected:
  KvRouter& Make(const KvRouterOptions& options, std::uint32_t workers = 2) {
    return router_.emplace(
        PoolShape{.workers = workers, .block_size = 10, .max_batched_tokens = 100}, options);
  }
  KvRouter& MakeWith(const KvRouterConfig& config, std::uint32_t workers = 2) {
    return Make({.config = config, .capture_candidates = true}, workers);
  }
  // Places a request with a prompt of the group; the decisions made_ are in `made_`.
  std::uint32_t Place(std::uint32_t group, std::uint64_t tokens, double now_ms = 0.0,
                      std::optional<Target> forced = std::nullopt) {
    const auto id = static_cast<std::uint32_t>(prompts_.groups.size());
    prompts_.groups.push_back(group);
    const workload::Request request{.id = id, .arrival_ms = now_ms, .prompt_tokens = tokens};
    made_.clear();
    EXPECT_TRUE(
        router_->Place({.request = request, .source = prompts_, .forced = forced}, now_ms, made_));
    return id;
  }
  static std::vector<kv::BlockName> Blocks(std::uint32_t group, std::uint32_t count) {
    std::vector<kv::BlockName> names;
    for (std::uint32_t i = 0; i < count; ++i) {
      names.push_back((kv::BlockName{group} << 32U) | i);
    }
    return names;
  }

  Prompts prompts_;
  std::optional<KvRouter> router_;
  std::vector<Decision> made_;
};

TEST_F(KvRouterTest, CostIsWorkAheadAndOwnLessTheCachePlusBlocksInUse) {
  KvRouter& router = MakeWith({.decode_active_request_weight = 0.5});
  Place(1, 55, 0.0, Target{.worker = 1});
  router.OnStored(1, Blocks(2, 3));
  Place(2, 72, 0.0);
  ASSERT_EQ(made_.size(), 1U);
  EXPECT_EQ(made_[0].target.worker, 0U);
  ASSERT_EQ(made_[0].candidates.size(), 2U);
  const Candidate& idle = made_[0].candidates[0];
  EXPECT_DOUBLE_EQ(idle.prefill_cost, 7.2);
  EXPECT_DOUBLE_EQ(idle.decode_cost, 7.0);
  EXPECT_DOUBLE_EQ(idle.cost, 14.2);
  const Candidate& busy = made_[0].candidates[1];
  EXPECT_EQ(busy.overlap_blocks, 3U);
  EXPECT_EQ(busy.active_prefill_tokens, 55U);
  EXPECT_DOUBLE_EQ(busy.prefill_cost, (55 + 72) / 10.0 - 3.0);
  EXPECT_DOUBLE_EQ(busy.decode_cost, 5.0 + 7.0);
  EXPECT_DOUBLE_EQ(busy.request_cost, 0.5);
  EXPECT_EQ(made_[0].overlap->selected, 0U);
  EXPECT_EQ(made_[0].overlap->best_available, 3U);
}

TEST_F(KvRouterTest, EveryWeightCountsWhereItBelongs) {
  KvRouter& router = MakeWith(
      {.overlap_score_credit = 0.5, .overlap_score_credit_decay = 2.0, .prefill_load_scale = 3.0});
  Place(1, 40, 0.0, Target{.worker = 1});
  router.OnStored(1, Blocks(2, 4));
  Place(2, 80, 0.0);
  const Candidate& busy = made_[0].candidates[1];
  // 4 blocks more than the other target, over 8 blocks of the prompt.
  EXPECT_DOUBLE_EQ(busy.overlap_credit, 0.5 / (1.0 + 2.0 * 4.0 / 8.0) * 4.0);
  EXPECT_DOUBLE_EQ(busy.prefill_cost, 3.0 * (12.0 - busy.overlap_credit));
}

TEST_F(KvRouterTest, BlocksOfActiveRequestsThatThePromptSharesAreNotAdded) {
  MakeWith({.track_prefill_tokens = false});
  Place(1, 50, 0.0, Target{.worker = 1});
  Place(1, 80, 0.0);
  EXPECT_DOUBLE_EQ(made_[0].candidates[0].cost, 8.0);
  EXPECT_DOUBLE_EQ(made_[0].candidates[1].cost, 5.0 + 3.0);
  MakeWith({.track_active_blocks = false});
  Place(1, 50, 0.0, Target{.worker = 1});
  Place(1, 80, 0.0);
  EXPECT_DOUBLE_EQ(made_[0].candidates[1].decode_cost, 0.0);
}

TEST_F(KvRouterTest, TheFirstTokenFreesTokensTheEndBlocks) {
  KvRouter& router = MakeWith({});
  const std::uint32_t first = Place(1, 50, 0.0, Target{.worker = 1});
  router.PrefillDone(first, 1.0, made_);
  Place(2, 20, 1.0, Target{.worker = 0});
  EXPECT_EQ(made_[0].candidates[1].active_prefill_tokens, 0U);
  EXPECT_EQ(made_[0].candidates[1].active_blocks, 5U);
  EXPECT_EQ(made_[0].candidates[1].active_requests, 1U);
  router.Terminal(first, 2.0, made_);
  Place(3, 20, 2.0, Target{.worker = 0});
  EXPECT_EQ(made_[0].candidates[1].active_blocks, 0U);
  EXPECT_EQ(made_[0].candidates[1].active_requests, 0U);
}

TEST_F(KvRouterTest, TiesAreDrawnEvenlyAndASeedRepeats) {
  std::array<int, 4> counts{};
  Make({.seed = 9}, 4);
  std::vector<std::uint32_t> drawn;
  for (int i = 0; i < 400; ++i) {
    const std::uint32_t id = Place(1, 20);
    ++counts[made_[0].target.worker];
    drawn.push_back(made_[0].target.worker);
    router_->Terminal(id, 0.0, made_);
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, 100, 40);
  }
  Make({.seed = 9}, 4);
  for (const std::uint32_t worker : drawn) {
    const std::uint32_t id = Place(1, 20);
    ASSERT_EQ(made_[0].target.worker, worker);
    router_->Terminal(id, 0.0, made_);
  }
}

// Costs 0, 5 and 10 of range 10: weights 1, exp(-0.5 / T) and exp(-1 / T).
TEST_F(KvRouterTest, TemperatureSamplesASoftmaxOfTheNormalisedCosts) {
  for (const auto& [temperature, share] :
       {std::pair{0.25, 0.867}, std::pair{1.0, 0.506}, std::pair{4.0, 0.375}}) {
    MakeWith({.temperature = temperature, .track_prefill_tokens = false}, 3);
    Place(1, 50, 0.0, Target{.worker = 1});
    Place(2, 100, 0.0, Target{.worker = 2});
    int first = 0;
    for (int i = 0; i < 4000; ++i) {
      const std::uint32_t id = Place(3, 10);
      first += made_[0].target.worker == 0 ? 1 : 0;
      router_->Terminal(id, 0.0, made_);
    }
    EXPECT_NEAR(first / 4000.0, share, 0.03) << temperature;
  }
}

TEST_F(KvRouterTest, AForcedTargetIsTakenCountedAndJudged) {
  MakeWith({});
  Place(1, 50, 0.0, Target{.worker = 1});
  EXPECT_TRUE(made_[0].possible);
  Place(2, 20, 0.0, Target{.worker = 1});
  EXPECT_EQ(made_[0].target.worker, 1U);
  EXPECT_FALSE(made_[0].possible);
  Place(3, 20, 0.0);
  EXPECT_EQ(made_[0].candidates[1].active_requests, 2U);
  EXPECT_EQ(made_[0].candidates[1].active_prefill_tokens, 70U);
}

TEST_F(KvRouterTest, RequestsWaitWhileAllTargetsAreBusyWithTheOverlapOfTheirArrival) {
  KvRouter& router = MakeWith({.queue_threshold = 0.5}, 1);
  const std::uint32_t first = Place(1, 60);  // 60 tokens > 0.5 * 100
  ASSERT_EQ(made_.size(), 1U);
  Place(2, 30, 1.0);
  EXPECT_TRUE(made_.empty());
  EXPECT_EQ(router.Pending(), 1U);
  router.OnStored(0, Blocks(2, 3));  // too late for it
  made_.clear();
  router.PrefillDone(first, 2.0, made_);
  ASSERT_EQ(made_.size(), 1U);
  EXPECT_EQ(made_[0].queued_at_ms, std::optional(1.0));
  EXPECT_EQ(made_[0].overlap->selected, 0U);
  EXPECT_EQ(router.Pending(), 0U);
}

TEST_F(KvRouterTest, ExactlyTheThresholdIsNotBusy) {
  MakeWith({.queue_threshold = 0.6}, 1);
  Place(1, 60);
  Place(2, 30);
  EXPECT_EQ(made_.size(), 1U);
}

TEST_F(KvRouterTest, ACanceledRequestLeavesTheQueue) {
  KvRouter& router = MakeWith({.queue_threshold = 0.0}, 1);
  const std::uint32_t first = Place(1, 60);
  const std::uint32_t second = Place(2, 30);
  EXPECT_TRUE(router.CancelPending(second));
  EXPECT_FALSE(router.CancelPending(second));
  made_.clear();
  router.Terminal(first, 1.0, made_);
  EXPECT_TRUE(made_.empty());
}

TEST_F(KvRouterTest, WithoutEventsPlacementsStandForCachesUntilTheyAreOld) {
  KvRouter& router = Make({.caches = CacheSource::kTtl, .ttl = {.ttl_ms = 100.0}});
  EXPECT_FALSE(router.WantsEvents());
  const std::uint32_t first = Place(1, 40);
  const std::uint32_t worker = made_[0].target.worker;
  router.Terminal(first, 1.0, made_);
  const std::uint32_t second = Place(1, 60, 99.0);
  EXPECT_EQ(made_[0].target.worker, worker);
  EXPECT_EQ(made_[0].overlap->selected, 4U);
  router.Terminal(second, 99.5, made_);
  Place(1, 60, 199.0);
  EXPECT_EQ(made_[0].overlap->best_available, 0U);
}

TEST_F(KvRouterTest, PredictedBlocksCountBesideThoseOfEventsUntilTheyAreOld) {
  KvRouter& router = Make({.config = {.track_active_blocks = false, .track_prefill_tokens = false},
                           .capture_candidates = true,
                           .predicted_ttl_ms = 100.0},
                          3);
  router.OnStored(0, Blocks(1, 2));
  router.OnStored(2, Blocks(1, 5));
  Place(1, 40, 0.0, Target{.worker = 1});  // no event says so yet
  Place(1, 40, 50.0, Target{.worker = 0});
  EXPECT_EQ(made_[0].candidates[0].overlap_blocks, 2U);
  EXPECT_EQ(made_[0].candidates[1].overlap_blocks, 4U);
  EXPECT_EQ(made_[0].candidates[2].overlap_blocks, 4U);
  Place(1, 60, 120.0, Target{.worker = 2});
  EXPECT_EQ(made_[0].candidates[0].overlap_blocks, 4U);  // placed at 50
  EXPECT_EQ(made_[0].candidates[1].overlap_blocks, 0U);  // too old
  EXPECT_EQ(made_[0].candidates[2].overlap_blocks, 5U);  // the events know more
}

TEST_F(KvRouterTest, WithoutEventsAnLruCacheOfTheTargetsSizeLosesWhatItWouldLose) {
  KvRouter& router = Make({.caches = CacheSource::kLru, .lru_blocks = 5}, 1);
  router.Terminal(Place(1, 40), 1.0, made_);
  router.Terminal(Place(2, 30), 2.0, made_);
  Place(1, 40, 3.0);
  EXPECT_EQ(made_[0].overlap->selected, 2U);
}

}  // namespace
}  // namespace dynosim::router
