// SPDX-License-Identifier: Apache-2.0
// The rules of chapter 20 one by one, on cases small enough to be worked out by hand.
#include "engine/sglang/core.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/effects.h"
#include "engine/settings.h"
#include "engine/sglang/replay_fixture.h"

namespace dynosim::engine::sglang {
namespace {

using Admissions = std::vector<std::pair<double, std::uint64_t>>;
using Times = std::vector<double>;

std::vector<Played> Play(const EngineSettings& settings, std::vector<Row> rows) {
  return Player(settings, std::move(rows)).Play();
}

TEST(SglangCore, SplitsAPromptAcrossPassesAndFillsTheRestOfTheBudget) {
  EngineSettings s = Settings(4096);
  s.sglang.chunked_prefill_size = 64;
  const auto played = Play(s, {{0, 40, 2}, {0, 41, 2}, {0, 10, 2}});
  EXPECT_EQ(played[0].tokens_ms, (Times{20, 45}));
  EXPECT_EQ(played[1].tokens_ms, (Times{40, 45}));
  EXPECT_EQ(played[2].tokens_ms, (Times{40, 45}));
  EXPECT_EQ(played[1].admissions, (Admissions{{0, 0}}));
  EXPECT_EQ(played[2].admissions, (Admissions{{20, 0}}));
}

TEST(SglangCore, APrefillPassGivesRunningRequestsNothing) {
  const auto played = Play(Settings(1000), {{0, 10, 4}, {22, 10, 1}});
  // Decode ends at 25; the prefill of the second request takes 25 to 45.
  EXPECT_EQ(played[0].tokens_ms, (Times{20, 25, 50, 55}));
  EXPECT_EQ(played[1].tokens_ms, (Times{45}));
}

TEST(SglangCore, OutputsOfNoneAndOneEndWithTheirPrefillPass) {
  const auto played = Play(Settings(1000), {{0, 10, 0}, {0, 10, 1}});
  EXPECT_EQ(played[0].tokens, 0U);
  EXPECT_EQ(played[0].end_ms, 20.0);
  EXPECT_EQ(played[1].tokens_ms, (Times{20}));
}

TEST(SglangCore, APrefillPassSignalsInTheOrderOfItsBatch) {
  Player player(Settings(1000), {{0, 10, 2}, {0, 10, 1}, {0, 10, 2}, {0, 10, 0}, {0, 10, 1}});
  player.Play();
  using Kind = Signal::Kind;
  const std::vector<std::pair<std::uint32_t, Kind>> expected = {
      {0, Kind::kFirstToken}, {1, Kind::kFinished}, {2, Kind::kFirstToken}, {3, Kind::kFinished},
      {4, Kind::kFinished},   {0, Kind::kFinished}, {2, Kind::kFinished}};
  EXPECT_EQ(player.signals(), expected);
}

TEST(SglangCore, ACachedPromptStillComputesItsLastToken) {
  const auto played = Play(Settings(1000), {{0, 64, 2, 1, 64}, {100, 64, 2, 1, 64}});
  EXPECT_EQ(played[1].admissions, (Admissions{{100, 63}}));
  EXPECT_EQ(played[1].tokens_ms, (Times{120, 125}));
}

TEST(SglangCore, AFullyCachedPromptWithoutOutputTakesNoTime) {
  const auto played = Play(Settings(1000), {{0, 64, 2, 1, 64}, {100, 64, 0, 1, 64}});
  EXPECT_EQ(played[1].admissions, (Admissions{{100, 64}}));
  EXPECT_EQ(played[1].end_ms, 100.0);
}

TEST(SglangCore, WholePagesAreReusedAndShared) {
  const auto played = Play(Settings(100, 16), {{0, 40, 2, 1, 2}, {100, 50, 2, 1, 2}});
  EXPECT_EQ(played[1].admissions, (Admissions{{100, 32}}));
}

TEST(SglangCore, WithoutPrefixCachingNothingIsReused) {
  EngineSettings s = Settings(1000);
  s.enable_prefix_caching = false;
  Player player(s, {{0, 64, 2, 1, 64}, {100, 64, 2, 1, 64}});
  EXPECT_EQ(player.Play()[1].admissions, (Admissions{{100, 0}}));
  EXPECT_EQ(player.core().cache().free(), 1000U);
}

TEST(SglangCore, ARequestNeedsStrictlyLessThanWhatIsLeft) {
  // Prompt and output fill the pool exactly: nothing is known in advance, but it never fits.
  const auto exact = Play(Settings(30), {{0, 20, 10}, {1, 5, 2}});
  EXPECT_EQ(exact[0].rejected, Rejection::Reason::kNoProgress);
  EXPECT_EQ(exact[1].tokens, 2U);
  const auto below = Play(Settings(31), {{0, 20, 10}});
  EXPECT_EQ(below[0].tokens, 10U);
}

TEST(SglangCore, WhatCanNeverFinishIsRejectedInAdvance) {
  const auto played = Play(Settings(30), {{0, 31, 1}, {0, 20, 11}, {0, 20, 1}});
  EXPECT_EQ(played[0].rejected, Rejection::Reason::kPromptOverPool);
  EXPECT_EQ(played[1].rejected, Rejection::Reason::kTotalOverPool);
  EXPECT_EQ(played[0].end_ms, 20.0);  // with the pass that serves the third
  EXPECT_FALSE(played[2].rejected.has_value());
}

TEST(SglangCore, TheContextLimitRejectsLongPromptsAndCutsOutputs) {
  EngineSettings s = Settings(1000);
  s.max_model_len = 20;
  const auto played = Play(s, {{0, 20, 1}, {1, 15, 100}});
  EXPECT_EQ(played[0].rejected, Rejection::Reason::kContextLimit);
  EXPECT_EQ(played[0].end_ms, 0.0);
  EXPECT_EQ(played[1].tokens, 5U);
}

TEST(SglangCore, RetractionTakesTheRequestWithTheFewestTokensAndReusesItsCache) {
  EngineSettings s = Settings(60);
  s.sglang.schedule_conservativeness = 0.0;
  s.sglang.clip_max_new_tokens = 1;
  const auto played = Play(s, {{0, 10, 12}, {21, 10, 12}});
  EXPECT_EQ(played[0].admissions.size(), 1U);
  ASSERT_EQ(played[1].admissions.size(), 1U);
  const auto tight = Play(
      [&] {
        EngineSettings t = s;
        t.num_gpu_blocks = 30;
        return t;
      }(),
      {{0, 10, 12}, {21, 10, 12}});
  EXPECT_EQ(tight[0].admissions.size(), 1U);
  ASSERT_GE(tight[1].admissions.size(), 2U);
  // Its prompt and its first generated tokens are still cached.
  EXPECT_GT(tight[1].admissions[1].second, 10U);
  EXPECT_EQ(tight[1].tokens, 12U);
}

TEST(SglangCore, RetractionTiesGoToTheEarliestPosition) {
  EngineSettings s = Settings(30);
  s.sglang.schedule_conservativeness = 0.0;
  s.sglang.clip_max_new_tokens = 1;
  const auto played = Play(s, {{0, 10, 12}, {0, 10, 12}});
  EXPECT_EQ(played[0].admissions.size(), 2U);
  EXPECT_EQ(played[1].admissions.size(), 1U);
}

TEST(SglangCore, TheNewTokenRatioDecaysToASeventhOfItsStart) {
  Player player(Settings(100000), {{0, 10, 700}});
  EXPECT_EQ(player.core().new_token_ratio(), 0.7);
  player.Play();
  EXPECT_EQ(player.core().new_token_ratio(), 0.7 * 0.14);
}

TEST(SglangCore, LongestPrefixFirstReordersTheQueue) {
  EngineSettings s = Settings(4000);
  s.sglang.schedule_policy = SglangPolicy::kLpm;
  s.max_num_seqs = 1;
  const std::vector<Row> rows = {
      {0, 64, 2, 1, 64}, {1, 80, 1}, {1, 80, 1, 1, 40}, {1, 80, 1, 1, 64}};
  const auto played = Play(s, rows);
  EXPECT_LT(played[3].end_ms, played[2].end_ms);
  EXPECT_LT(played[2].end_ms, played[1].end_ms);
  s.sglang.schedule_policy = SglangPolicy::kFifo;
  const auto fifo = Play(s, rows);
  EXPECT_LT(fifo[1].end_ms, fifo[2].end_ms);
  EXPECT_LT(fifo[2].end_ms, fifo[3].end_ms);
}

TEST(SglangCore, LongestPrefixFirstDemotesLaterHoldersOfAnUncachedPrefix) {
  EngineSettings s = Settings(4000);
  s.sglang.schedule_policy = SglangPolicy::kLpm;
  s.sglang.chunked_prefill_size = 128;
  // The second shares its first 32 tokens with the first and yields to the third.
  const auto played = Play(s, {{0, 64, 1, 5, 32}, {0, 64, 1, 5, 32}, {0, 64, 1}});
  EXPECT_EQ(played[0].end_ms, 20.0);
  EXPECT_EQ(played[2].end_ms, 20.0);
  EXPECT_EQ(played[1].admissions, (Admissions{{20, 32}}));
}

TEST(SglangCore, TheIntervalKeepsPrefillsApart) {
  EngineSettings s = Settings(1000);
  s.prefill_decode_interval = 2;
  const auto played = Play(s, {{0, 10, 6}, {1, 10, 1}});
  EXPECT_EQ(played[0].tokens_ms, (Times{20, 25, 30, 55, 60, 65}));
  EXPECT_EQ(played[1].admissions, (Admissions{{30, 0}}));
}

TEST(SglangCore, AnIntervalWithNothingToDecodeTakesNoTime) {
  EngineSettings s = Settings(1000);
  s.prefill_decode_interval = 1000000000;
  const auto played = Play(s, {{0, 10, 1}, {1, 10, 1}, {500, 10, 1}});
  EXPECT_EQ(played[1].tokens_ms, (Times{40}));
  EXPECT_EQ(played[2].tokens_ms, (Times{520}));
}

TEST(SglangCore, TheIntervalCountsForAllRanksOfAWorker) {
  EngineSettings s = Settings(1000);
  s.prefill_decode_interval = 2;
  s.dp_size = 2;
  // The second rank has never computed anything, yet it waits for two decode passes of the first.
  const auto played = Play(s, {{0, 10, 6}, {1, 10, 1, 0, 0, 1}});
  EXPECT_EQ(played[1].admissions, (Admissions{{30, 0}}));
}

TEST(SglangCore, DataParallelRanksShareTheChunkAndAreBolder) {
  EngineSettings s = Settings(1000);
  s.dp_size = 2;
  s.sglang.chunked_prefill_size = 64;
  Player player(s, {{0, 64, 1}});
  EXPECT_EQ(player.core().new_token_ratio(), 0.7 * 0.3);
  EXPECT_EQ(player.Play()[0].tokens_ms, (Times{40}));
}

TEST(SglangCore, AWaitingPromptGivesItsPagesBackWhenTheRunningRequestCannotGrow) {
  EngineSettings s = Settings(32);
  s.sglang.schedule_conservativeness = 0.0;
  s.sglang.clip_max_new_tokens = 0;
  s.sglang.chunked_prefill_size = 8;
  const auto played = Play(s, {{0, 8, 24}, {21, 28, 2}});
  EXPECT_EQ(played[0].tokens, 24U);
  EXPECT_EQ(played[1].tokens, 2U);
  EXPECT_GT(played[1].admissions.size(), 1U);
}

TEST(SglangCore, PagesDoNotGoBackAndForthBetweenABurstAndAPrompt) {
  // The prompt leaves one page, the burst needs two: whoever gives way must let the other move.
  EngineSettings s = Settings(32);
  s.sglang.schedule_conservativeness = 0.0;
  s.sglang.clip_max_new_tokens = 0;
  s.sglang.chunked_prefill_size = 8;
  s.enable_prefix_caching = false;
  s.speculative_tokens = 1;
  s.accept_rates = {1.0};
  const auto played = Play(s, {{0, 8, 24}, {21, 28, 2}});
  EXPECT_EQ(played[0].tokens, 24U);
  EXPECT_EQ(played[1].tokens, 2U);
}

TEST(SglangCore, BurstsGiveSeveralTokensAPassButNotWithThePrefill) {
  EngineSettings s = Settings(1000);
  s.speculative_tokens = 2;
  s.accept_rates = {1.0, 1.0};
  const auto played = Play(s, {{0, 10, 8}});
  EXPECT_EQ(played[0].tokens_ms, (Times{20, 25, 30, 35}));
  EXPECT_EQ(played[0].tokens, 8U);
}

}  // namespace
}  // namespace dynosim::engine::sglang
