// SPDX-License-Identifier: Apache-2.0
// Synthetic workloads through the loader: shapes, arrivals, shared prefixes, closed loops, errors.
#include "workload/synthetic.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "workload/arrivals.h"
#include "workload/load.h"
#include "workload/request.h"
#include "workload/source.h"
#include "workload/spec.h"

namespace dynosim::workload {
namespace {

using Extents = std::vector<BlockExtent>;

WorkloadSpec Spec(std::int64_t input, std::int64_t output, std::int64_t count) {
  return {.synthetic = SyntheticSpec{
              .input_tokens = input, .output_tokens = output, .request_count = count}};
}

std::unique_ptr<RequestSource> Load(const WorkloadSpec& spec, std::uint64_t block_size = 64) {
  auto loaded = LoadWorkload(spec, block_size);
  EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().Text());
  return loaded ? std::move(loaded->source) : nullptr;
}

std::string ErrorOf(const WorkloadSpec& spec) {
  const auto loaded = LoadWorkload(spec, 64);
  return loaded ? "no error" : loaded.error().Text();
}

Request Release(RequestSource& source, double now_ms) {
  Request request;
  EXPECT_TRUE(source.Release(now_ms, request));
  return request;
}

Extents BlocksOf(const RequestSource& source, std::uint32_t id, std::uint64_t block_size = 64) {
  Extents out = {{99, 99, 99}};
  source.Blocks(id, block_size, out);
  return out;
}

TEST(SyntheticList, ReleasesAtTheArrivalsDividedByTheSpeedup) {
  WorkloadSpec spec = Spec(100, 5, 3);
  spec.synthetic->request_rate = 8.0;
  spec.arrival_speedup_ratio = 3.0;
  const auto source = Load(spec);
  ArrivalProcess arrivals = ArrivalProcess::Poisson(8.0, 42);
  for (std::uint32_t i = 0; i < 3; ++i, arrivals.Advance()) {
    const double at_ms = arrivals.NextMs() / 3.0;
    EXPECT_EQ(source->NextReadyMs(), at_ms);
    Request request;
    EXPECT_FALSE(source->Release(at_ms - 0.001, request));
    request = Release(*source, at_ms + 0.5);
    EXPECT_EQ(request.id, i);
    EXPECT_EQ(request.arrival_ms, at_ms);
    EXPECT_EQ(request.prompt_tokens, 100U);
    EXPECT_EQ(request.output_tokens, 5U);
    EXPECT_EQ(request.session, kNone);
    EXPECT_EQ(request.turn, kNone);
  }
  EXPECT_TRUE(source->Exhausted());
  EXPECT_EQ(source->NextReadyMs(), std::nullopt);
  EXPECT_EQ(source->RequestCount(), 3U);
}

TEST(SyntheticList, ClosedLoopReleasesWhenARequestEnds) {
  WorkloadSpec spec = Spec(100, 5, 3);
  spec.replay_concurrency = 2;
  const auto source = Load(spec);
  EXPECT_LE(*source->NextReadyMs(), 0.0);
  EXPECT_EQ(Release(*source, 0.0).arrival_ms, 0.0);
  EXPECT_EQ(Release(*source, 0.0).id, 1U);
  EXPECT_EQ(source->NextReadyMs(), std::nullopt);
  EXPECT_FALSE(source->Exhausted());
  source->OnTerminal(1, 12.5, TerminalStatus::kRejected, 0);
  EXPECT_LE(*source->NextReadyMs(), 12.5);
  EXPECT_EQ(Release(*source, 12.5).arrival_ms, 12.5);
  EXPECT_TRUE(source->Exhausted());
}

TEST(SyntheticList, EveryRequestIsOnePrivateExtent) {
  WorkloadSpec spec = Spec(100, 5, 2);
  spec.replay_concurrency = 2;
  const auto source = Load(spec);
  EXPECT_EQ(BlocksOf(*source, 0), (Extents{{0, 0, kEndless}}));
  EXPECT_EQ(BlocksOf(*source, 1), (Extents{{1, 0, kEndless}}));
  EXPECT_FALSE(source->SharesGeneratedBlocks());
}

TEST(SyntheticList, PromptTokensFollowTheMixAndDiffer) {
  WorkloadSpec spec = Spec(2, 5, 2);
  spec.replay_concurrency = 1;
  const auto source = Load(spec);
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> second;
  source->PromptTokens(0, first);
  source->PromptTokens(1, second);
  // splitmix64 of 0 is e220a8397b1dcdaf.
  EXPECT_EQ(first[0], 0x7b1dcdafU);
  EXPECT_EQ(first.size(), 2U);
  EXPECT_NE(first, second);
  EXPECT_EQ(source->OutputToken(0, 1), 3600266899U);
}

TEST(SyntheticShape, ListUnlessASessionOptionIsAboveItsDefault) {
  const auto session_of_first = [](auto&& change) {
    WorkloadSpec spec = Spec(100, 5, 2);
    spec.replay_concurrency = 1;
    change(*spec.synthetic);
    const auto source = Load(spec);
    return Release(*source, 0.0).session;
  };
  EXPECT_EQ(session_of_first([](SyntheticSpec& s) { s.turns_per_session = 0; }), kNone);
  EXPECT_EQ(session_of_first([](SyntheticSpec& s) { s.shared_prefix_ratio = -1.0; }), kNone);
  EXPECT_EQ(session_of_first([](SyntheticSpec& s) { s.inter_turn_delay_ms = -1.0; }), kNone);
  EXPECT_EQ(session_of_first([](SyntheticSpec& s) { s.num_prefix_groups = -1; }), kNone);
  EXPECT_EQ(session_of_first([](SyntheticSpec& s) { s.turns_per_session = 2; }), 0U);
  EXPECT_EQ(session_of_first([](SyntheticSpec& s) { s.shared_prefix_ratio = 0.1; }), 0U);
  EXPECT_EQ(session_of_first([](SyntheticSpec& s) { s.inter_turn_delay_ms = 1.0; }), 0U);
  EXPECT_EQ(session_of_first([](SyntheticSpec& s) { s.num_prefix_groups = 1; }), 0U);
}

TEST(SyntheticSessions, TurnsFollowTheEndOfTheTurnBeforePlusTheScaledDelay) {
  WorkloadSpec spec = Spec(100, 5, 2);
  spec.synthetic->arrival_interval_ms = 0.0;
  spec.synthetic->turns_per_session = 2;
  spec.synthetic->inter_turn_delay_ms = 30.0;
  spec.arrival_speedup_ratio = 2.0;
  const auto source = Load(spec);
  EXPECT_EQ(source->RequestCount(), 4U);
  Request request = Release(*source, 0.0);
  EXPECT_EQ(request.id, 0U);
  EXPECT_EQ(request.session, 0U);
  EXPECT_EQ(request.turn, 0U);
  request = Release(*source, 0.0);
  EXPECT_EQ(request.id, 2U);
  EXPECT_EQ(source->SessionName(request.session), "session_1");
  EXPECT_EQ(source->NextReadyMs(), std::nullopt);
  source->OnTerminal(2, 10.0, TerminalStatus::kRejected, 0);
  source->OnTerminal(0, 10.0, TerminalStatus::kCompleted, 5);
  EXPECT_EQ(source->NextReadyMs(), 25.0);
  request = Release(*source, 25.0);
  EXPECT_EQ(request.id, 1U);
  EXPECT_EQ(request.turn, 1U);
  EXPECT_EQ(request.arrival_ms, 25.0);
  EXPECT_FALSE(source->Exhausted());
  EXPECT_EQ(Release(*source, 25.0).id, 3U);
  EXPECT_TRUE(source->Exhausted());
}

TEST(SyntheticSessions, FailedTurnEndsItsSession) {
  WorkloadSpec spec = Spec(100, 5, 2);
  spec.synthetic->turns_per_session = 3;
  spec.replay_concurrency = 1;
  const auto source = Load(spec);
  EXPECT_EQ(Release(*source, 0.0).id, 0U);
  source->OnTerminal(0, 7.0, TerminalStatus::kFailed, 0);
  EXPECT_EQ(source->NextReadyMs(), 7.0);
  EXPECT_EQ(Release(*source, 7.0).id, 3U);
  source->OnTerminal(3, 9.0, TerminalStatus::kCanceled, 0);
  EXPECT_TRUE(source->Exhausted());
  EXPECT_EQ(source->NextReadyMs(), std::nullopt);
}

TEST(SyntheticSessions, ConcurrencyModeDoesNotScaleDelaysAndIgnoresTheSpeedup) {
  WorkloadSpec spec = Spec(100, 5, 1);
  spec.synthetic->turns_per_session = 2;
  spec.synthetic->inter_turn_delay_ms = 30.0;
  spec.replay_concurrency = 1;
  spec.arrival_speedup_ratio = std::numeric_limits<double>::quiet_NaN();
  const auto source = Load(spec);
  Release(*source, 0.0);
  source->OnTerminal(0, 10.0, TerminalStatus::kCompleted, 5);
  EXPECT_EQ(source->NextReadyMs(), 40.0);
}

// Shared blocks of an input of `blocks` blocks.
std::uint32_t SharedBlocks(std::int64_t blocks, double ratio) {
  WorkloadSpec spec = Spec(blocks * 64, 5, 1);
  spec.replay_concurrency = 1;
  spec.synthetic->shared_prefix_ratio = ratio;
  spec.synthetic->num_prefix_groups = 1;
  const Extents extents = BlocksOf(*Load(spec), 0);
  return extents.size() == 2 ? extents[0].count : 0;
}

TEST(SyntheticSessions, SharedBlocksAreRoundedHalfAwayFromZero) {
  EXPECT_EQ(SharedBlocks(7, 0.5), 4U);
  EXPECT_EQ(SharedBlocks(5, 0.5), 3U);
  EXPECT_EQ(SharedBlocks(1, 0.5), 1U);
  EXPECT_EQ(SharedBlocks(7, 0.49), 3U);
  EXPECT_EQ(SharedBlocks(13, 0.3), 4U);
  EXPECT_EQ(SharedBlocks(13, 1.0), 13U);
}

TEST(SyntheticSessions, OnlyCompleteBlocksAreNamedForTheGroup) {
  WorkloadSpec spec = Spec(100, 5, 2);
  spec.replay_concurrency = 1;
  spec.synthetic->shared_prefix_ratio = 1.0;
  spec.synthetic->num_prefix_groups = 1;
  EXPECT_EQ(BlocksOf(*Load(spec), 0), (Extents{{0, 0, 1}, {1, 0, kEndless}}));
  EXPECT_EQ(BlocksOf(*Load(spec), 1), (Extents{{0, 0, 1}, {2, 0, kEndless}}));
  EXPECT_EQ(BlocksOf(*Load(spec, 128), 1, 128), (Extents{{2, 0, kEndless}}));
}

TEST(SyntheticSessions, GroupsAreDrawnOncePerSessionFromTheFixedSeed) {
  WorkloadSpec spec = Spec(128, 5, 8);
  spec.replay_concurrency = 1;
  spec.synthetic->turns_per_session = 2;
  spec.synthetic->shared_prefix_ratio = 0.5;
  spec.synthetic->num_prefix_groups = 3;
  spec.synthetic->arrival_seed = 7;  // has no say here
  const auto source = Load(spec);
  ChaCha12 random(42);
  std::vector<std::uint32_t> first_use(3, kNone);
  std::uint32_t used = 0;
  for (std::uint32_t s = 0; s < 8; ++s) {
    const std::uint32_t group = random.NextBelow(3);
    if (first_use[group] == kNone) {
      first_use[group] = used++;
    }
    for (std::uint32_t turn = 0; turn < 2; ++turn) {
      EXPECT_EQ(BlocksOf(*source, 2 * s + turn)[0], (BlockExtent{first_use[group], 0, 1}));
    }
  }
}

TEST(SyntheticSessions, CumulativePromptsGrowByWhatWasGenerated) {
  WorkloadSpec spec = Spec(128, 4, 1);
  spec.replay_concurrency = 1;
  spec.synthetic->turns_per_session = 3;
  spec.synthetic->session_prompts = SessionPrompts::kCumulative;
  const auto source = Load(spec);
  EXPECT_TRUE(source->SharesGeneratedBlocks());
  EXPECT_EQ(Release(*source, 0.0).prompt_tokens, 128U);
  const Extents first = BlocksOf(*source, 0);
  EXPECT_EQ(first, (Extents{{3, 0, 2}}));  // 4 generated tokens fill no block of 64
  source->OnTerminal(0, 1.0, TerminalStatus::kCompleted, 4);
  EXPECT_EQ(Release(*source, 1.0).prompt_tokens, 260U);
  const Extents second = BlocksOf(*source, 1);
  EXPECT_EQ(second[0], first[0]);
  EXPECT_EQ(second.size(), 2U);
  source->OnTerminal(1, 2.0, TerminalStatus::kRejected, 0);
  EXPECT_EQ(Release(*source, 2.0).prompt_tokens, 388U);
  EXPECT_EQ(BlocksOf(*source, 2).back().count, kEndless);
  std::vector<std::uint32_t> tokens;
  source->PromptTokens(2, tokens);
  ASSERT_EQ(tokens.size(), 388U);
  EXPECT_EQ(tokens[128], source->OutputToken(0, 0));
  EXPECT_EQ(tokens[131], source->OutputToken(0, 3));
}

TEST(SyntheticErrors, NameTheOptionAndWhatIsAllowed) {
  WorkloadSpec spec = Spec(100, 5, 2);
  EXPECT_EQ(ErrorOf(spec),
            "synthetic workload: exactly one of --replay-concurrency, --request-rate and "
            "--arrival-interval-ms must be given, got 0");
  spec.replay_concurrency = 1;
  spec.synthetic->request_rate = 1.0;
  EXPECT_TRUE(ErrorOf(spec).ends_with("got 2"));
  spec.synthetic->request_rate.reset();
  spec.replay_concurrency = 0;
  EXPECT_EQ(ErrorOf(spec), "--replay-concurrency: must be at least 1, got 0");
  spec.replay_concurrency.reset();
  spec.synthetic->request_rate = -1.5;
  EXPECT_EQ(ErrorOf(spec), "--request-rate: must be a finite positive number, got -1.5");
  spec.synthetic->request_rate.reset();
  spec.synthetic->arrival_interval_ms = std::numeric_limits<double>::infinity();
  EXPECT_EQ(ErrorOf(spec), "--arrival-interval-ms: must be a finite number of at least 0, got inf");
  spec.synthetic->arrival_interval_ms = 0.0;
  spec.arrival_speedup_ratio = 0.0;
  EXPECT_EQ(ErrorOf(spec), "--arrival-speedup-ratio: must be a finite positive number, got 0");
}

TEST(SyntheticErrors, CountsMustBePositive) {
  const auto error_of = [](std::int64_t input, std::int64_t output, std::int64_t count) {
    WorkloadSpec spec = Spec(input, output, count);
    spec.replay_concurrency = 1;
    return ErrorOf(spec);
  };
  EXPECT_EQ(error_of(0, 1, 1), "--input-tokens: must be between 1 and 281474976710656, got 0");
  EXPECT_EQ(error_of(1, 0, 1), "--output-tokens: must be between 1 and 281474976710656, got 0");
  EXPECT_EQ(error_of(1, 1, -3), "--request-count: must be between 1 and 2147483647, got -3");
}

TEST(SyntheticErrors, SessionOptionsAreCheckedOnlyInTheSessionShape) {
  const auto error_of = [](auto&& change) {
    WorkloadSpec spec = Spec(100, 5, 2);
    spec.replay_concurrency = 1;
    change(*spec.synthetic);
    return ErrorOf(spec);
  };
  EXPECT_EQ(error_of([](SyntheticSpec& s) { s.shared_prefix_ratio = 1.5; }),
            "--shared-prefix-ratio: must be between 0.0 and 1.0, got 1.5");
  EXPECT_EQ(error_of([](SyntheticSpec& s) {
              s.num_prefix_groups = 1;
              s.turns_per_session = 0;
            }),
            "--turns-per-session: must be between 1 and 2147483647, got 0");
  EXPECT_EQ(error_of([](SyntheticSpec& s) {
              s.turns_per_session = 2;
              s.inter_turn_delay_ms = -1.0;
            }),
            "--inter-turn-delay-ms: must be a finite number of at least 0, got -1");
  EXPECT_EQ(error_of([](SyntheticSpec& s) { s.num_prefix_groups = std::int64_t{1} << 32; }),
            "--num-prefix-groups: must be between 0 and 4294967295, got 4294967296");
  EXPECT_TRUE(error_of([](SyntheticSpec& s) {
                s.request_count = 1 << 20;
                s.turns_per_session = 1 << 20;
              }).starts_with("--turns-per-session: 1048576 sessions of 1048576 turns are more"));
}

TEST(SyntheticLists, HugeLengthsNeedNoMemory) {
  WorkloadSpec spec = Spec(std::int64_t{1} << 40, std::int64_t{1} << 40, 100000);
  spec.replay_concurrency = 1;
  const auto source = Load(spec);
  EXPECT_EQ(Release(*source, 0.0).output_tokens, std::uint64_t{1} << 40);
  spec.synthetic->num_prefix_groups = 4000000000;
  spec.synthetic->shared_prefix_ratio = 1.0;
  const auto sessions = Load(spec, 1);
  EXPECT_EQ(BlocksOf(*sessions, 0).back().count, kEndless);
}

}  // namespace
}  // namespace dynosim::workload
