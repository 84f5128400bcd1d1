// SPDX-License-Identifier: Apache-2.0
// The live driver on a hand-moved clock does what the offline loop does, bit for bit: the same
// worker, the same moments.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/cases_for_test.h"
#include "engine/effects.h"
#include "engine/kv_event_buffer.h"
#include "live/clock.h"
#include "live/online_replay.h"
#include "live/worker_driver.h"
#include "random_cases.h"
#include "sim/outcome.h"
#include "timing/fixed.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::testing {
namespace {

using workload::TerminalStatus;

class HandMovedClock final : public live::Clock {
 public:
  double NowMs() const override { return now_ms_; }
  void MoveTo(double now_ms) {
    ASSERT_GE(now_ms, now_ms_);
    now_ms_ = now_ms;
  }

 private:
  double now_ms_ = 0.0;
};

// What a client of the live driver sees of one request.
struct Seen {
  double arrival_ms = 0.0;
  std::optional<double> admitted_ms;
  std::uint64_t reused_first = 0, reused_max = 0, admissions = 0;
  std::vector<double> token_ms;
  std::optional<TerminalStatus> status;
  double terminal_ms = 0.0;
};

class Log final : public live::PassSink {
 public:
  Log(workload::RequestSource& source, std::uint32_t ranks)
      : seen(source.RequestCount()), last_event_(ranks) {}

  void OnAdmitted(const engine::Admission& admission, double now_ms) override {
    Seen& s = seen[admission.request];
    if (s.admissions++ == 0) {
      s.admitted_ms = now_ms;
      s.reused_first = admission.reused_tokens;
    }
    s.reused_max = std::max(s.reused_max, admission.reused_tokens);
  }
  void OnKvEvents(std::uint32_t rank, const engine::KvEventBuffer& events,
                  std::size_t count) override {
    ASSERT_EQ(events.records().size(), count);
    for (const auto& record : events.records()) {
      ASSERT_EQ(record.event_id, last_event_[rank]++) << "event ids never skip";
    }
  }
  void OnRankPass(const live::RankPass& pass, double planned_ms, double end_ms,
                  double now_ms) override {
    ASSERT_EQ(end_ms, now_ms);
    ASSERT_GE(planned_ms, 0.0);
    for (const engine::TokenGain& gain : pass.effects.gains) {
      seen[gain.request].token_ms.insert(seen[gain.request].token_ms.end(), gain.tokens, now_ms);
    }
    for (const engine::Signal& signal : pass.effects.signals) {
      if (signal.kind == engine::Signal::Kind::kFirstToken) {
        continue;
      }
      Seen& s = seen[signal.request];
      const bool done = signal.kind == engine::Signal::Kind::kFinished;
      s.status = done ? TerminalStatus::kCompleted : TerminalStatus::kRejected;
      s.terminal_ms = now_ms;
      ended.push_back({signal.request, *s.status});
    }
    ++passes;
  }
  void OnGauges(std::uint32_t, const engine::RankMetrics& metrics) override {
    ASSERT_LE(metrics.active_blocks, metrics.total_blocks);
  }
  void OnStuck(double now_ms) override { FAIL() << "stuck at " << now_ms; }

  struct Ended {
    std::uint32_t request;
    TerminalStatus status;
  };
  std::vector<Seen> seen;
  std::vector<Ended> ended;
  std::uint64_t passes = 0;

 private:
  std::vector<std::uint64_t> last_event_;
};

// Plays the case through the driver: the clock jumps to whatever is due next.
std::vector<Seen> PlayLive(const RandomCase& c, bool keep_lateness) {
  const std::unique_ptr<workload::RequestSource> source = SourceOf(c);
  Log log(*source, c.scenario.engine.dp_size);
  HandMovedClock clock;
  live::WorkerDriver driver(c.scenario.engine, 0,
                            {.kv_events = true,
                             .pass_metrics = true,
                             .keep_lateness = keep_lateness,
                             .instant_passes = std::numeric_limits<std::uint64_t>::max()},
                            *source, log);
  std::uint32_t next_rank = 0;
  const auto tell = [&] {
    for (const Log::Ended& ended : log.ended) {
      source->OnTerminal(ended.request, clock.NowMs(), ended.status,
                         log.seen[ended.request].token_ms.size());
    }
    log.ended.clear();
  };
  while (true) {
    bool changed = true;
    while (changed) {
      const double now_ms = clock.NowMs();
      const std::uint64_t before = log.passes;
      driver.Complete(now_ms);
      tell();
      workload::Request request;
      changed = false;
      while (source->Release(now_ms, request)) {
        log.seen[request.id].arrival_ms = request.arrival_ms;
        driver.Submit(request, next_rank++ % driver.ranks(), now_ms);
        changed = true;
      }
      driver.Start(now_ms);
      tell();
      changed = changed || log.passes != before;
    }
    constexpr double kNever = std::numeric_limits<double>::infinity();
    const double next_ms =
        std::min(source->NextReadyMs().value_or(kNever), driver.NextMs().value_or(kNever));
    if (next_ms == kNever ||
        (c.scenario.max_sim_time_ms && next_ms > *c.scenario.max_sim_time_ms)) {
      return log.seen;
    }
    clock.MoveTo(std::max(next_ms, clock.NowMs()));
  }
}

class LiveDriver : public ::testing::TestWithParam<std::string> {};

TEST_P(LiveDriver, EqualsTheOfflineLoopBitForBitOnAHandMovedClock) {
  std::uint64_t compared = 0;
  for (std::uint64_t seed = 1; seed <= Cases(400); ++seed) {
    RandomCase c = MakeRandomCase(seed, GetParam());
    c.scenario.num_workers = 1;
    const sim::Outcome offline = OutcomeOf(c);
    const std::vector<Seen> live = PlayLive(c, seed % 2 == 0);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
    for (const sim::RequestRecord& r : offline.records) {
      const Seen& s = live[r.id];
      SCOPED_TRACE("seed " + std::to_string(seed) + " request " + std::to_string(r.id) + "\n" +
                   c.engine + "\n" + c.trace);
      ASSERT_EQ(s.status.has_value(), r.terminal);
      ASSERT_EQ(s.arrival_ms, r.arrival_ms);
      ASSERT_EQ(s.admitted_ms, r.first_admit_ms);
      ASSERT_EQ(s.admissions, r.admissions);
      ASSERT_EQ(s.reused_first, r.reused_tokens_first);
      ASSERT_EQ(s.reused_max, r.reused_tokens_max);
      if (!r.terminal) {
        continue;
      }
      ASSERT_EQ(*s.status, r.status);
      ASSERT_EQ(s.terminal_ms, r.terminal_ms);
      if (r.status != TerminalStatus::kCompleted) {
        continue;
      }
      ASSERT_EQ(s.token_ms.size(), r.output_tokens);
      if (r.output_tokens > 0) {
        ASSERT_EQ(s.token_ms.front(), r.first_token_ms);
        ASSERT_EQ(s.token_ms.back(), r.last_token_ms);
      }
      if (r.output_tokens > 1) {
        ASSERT_EQ(s.token_ms[1], r.second_token_ms);
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, Cases(1000));
}

// Modelled ends of the passes of one request alone, 20 ms of prefill and 5 ms for each of three
// more tokens, by a worker that wakes up at these times.
class Wakeups final : public live::PassSink {
 public:
  static std::vector<double> PassEnds(bool keep_lateness, const std::vector<double>& wake_ms,
                                      double start_ms = 0.0) {
    RandomCase c;
    c.scenario.workload.synthetic = {.input_tokens = 64, .output_tokens = 4, .request_count = 1};
    c.scenario.workload.replay_concurrency = 1;
    c.scenario.engine.timing = std::make_shared<timing::FixedTiming>(20.0, 5.0);
    const std::unique_ptr<workload::RequestSource> source = SourceOf(c);
    workload::Request request;
    EXPECT_TRUE(source->Release(0.0, request));
    Wakeups sink;
    live::WorkerDriver driver(c.scenario.engine, 0, {.keep_lateness = keep_lateness}, *source,
                              sink);
    driver.Submit(request, 0, 0.0);
    driver.Start(start_ms);
    for (const double now_ms : wake_ms) {
      driver.Complete(now_ms);
      while (driver.CanStart()) {
        driver.Start(now_ms);
      }
    }
    return sink.ends_ms_;
  }

  void OnAdmitted(const engine::Admission&, double) override {}
  void OnKvEvents(std::uint32_t, const engine::KvEventBuffer&, std::size_t) override {}
  void OnRankPass(const live::RankPass&, double, double end_ms, double) override {
    ends_ms_.push_back(end_ms);
  }
  void OnGauges(std::uint32_t, const engine::RankMetrics&) override {}
  void OnStuck(double now_ms) override { FAIL() << "stuck at " << now_ms; }

 private:
  std::vector<double> ends_ms_;
};

TEST(LiveDriverLateness, IsMadeUpForUnlessKept) {
  const std::vector<double> wake_ms = {20.5, 25.75, 32.0, 40.0};
  EXPECT_EQ(Wakeups::PassEnds(false, wake_ms), (std::vector{20.0, 25.0, 30.0, 35.0}));
  EXPECT_EQ(Wakeups::PassEnds(true, wake_ms), (std::vector{20.0, 25.5, 30.75, 37.0}));
}

TEST(LiveDriverLateness, IsMadeUpForOverSeveralPasses) {
  EXPECT_EQ(Wakeups::PassEnds(false, {33.0, 35.0}), (std::vector{20.0, 25.0, 30.0, 35.0}));
}

TEST(LiveDriverLateness, OfAnIdleWorkerIsMadeUpFor) {
  EXPECT_EQ(Wakeups::PassEnds(false, {20.0}, 0.25), (std::vector{20.0}));
  EXPECT_EQ(Wakeups::PassEnds(true, {20.25}, 0.25), (std::vector{20.25}));
  EXPECT_EQ(Wakeups::PassEnds(false, {121.0}, 101.0), (std::vector{121.0}));
}

TEST(LiveDriverLateness, OfAMachineThatStoodStillIsNotMadeUpFor) {
  EXPECT_EQ(Wakeups::PassEnds(false, {20.0, 126.0, 131.0, 136.0}),
            (std::vector{20.0, 25.0, 131.0, 136.0}));
}

class LivePools : public ::testing::TestWithParam<std::string> {};

TEST_P(LivePools, EqualTheOfflineLoopBitForBitOnAHandMovedClock) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 1; seed <= Cases(400); ++seed) {
    RandomCase c = MakeRandomCase(seed, GetParam());
    c.scenario.telemetry = {};
    c.scenario.router.mode = seed % 3 == 0 ? "kv_router" : "round_robin";
    const sim::Outcome offline = OutcomeOf(c);
    const std::unique_ptr<workload::RequestSource> source = SourceOf(c);
    HandMovedClock clock;
    const auto online =
        live::RunOnline(c.scenario, *source, {}, clock, [&](double at_ms) { clock.MoveTo(at_ms); });
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + c.engine + "\n" + c.trace);
    ASSERT_TRUE(online) << online.error().Text();
    ASSERT_EQ(online->records.size(), offline.records.size());
    for (std::size_t i = 0; i < offline.records.size(); ++i) {
      const sim::RequestRecord& a = offline.records[i];
      const sim::RequestRecord& b = online->records[i];
      SCOPED_TRACE("request " + std::to_string(a.id));
      ASSERT_EQ(b.id, a.id);
      ASSERT_EQ(b.terminal, a.terminal);
      ASSERT_EQ(b.status, a.status);
      ASSERT_EQ(b.terminal_ms, a.terminal_ms);
      ASSERT_EQ(b.first_admit_ms, a.first_admit_ms);
      ASSERT_EQ(b.first_token_ms, a.first_token_ms);
      ASSERT_EQ(b.second_token_ms, a.second_token_ms);
      ASSERT_EQ(b.last_token_ms, a.last_token_ms);
      ASSERT_EQ(b.output_tokens, a.output_tokens);
      ASSERT_EQ(b.admissions, a.admissions);
      ASSERT_EQ(b.reused_tokens_first, a.reused_tokens_first);
      ASSERT_EQ(b.decode_scheduler, a.decode_scheduler);
      const sim::RequestDetail& d = offline.details[i];
      const sim::RequestDetail& e = online->details[i];
      ASSERT_EQ(e.source_held_ms, d.source_held_ms);
      ASSERT_EQ(e.destination_reserved_ms, d.destination_reserved_ms);
      ASSERT_EQ(e.transfer_start_ms, d.transfer_start_ms);
      ASSERT_EQ(e.transfer_end_ms, d.transfer_end_ms);
      ASSERT_EQ(e.destination_activated_ms, d.destination_activated_ms);
      ASSERT_EQ(e.source_released_ms, d.source_released_ms);
      compared += a.terminal ? 1 : 0;
    }
  }
  EXPECT_GT(compared, Cases(1000));
}

INSTANTIATE_TEST_SUITE_P(Backends, LivePools, ::testing::Values("vllm_pools", "sglang_pools"),
                         [](const auto& pools) { return pools.param; });

INSTANTIATE_TEST_SUITE_P(Backends, LiveDriver, ::testing::Values("vllm", "trtllm", "sglang"),
                         [](const auto& backend) { return backend.param; });

}  // namespace
}  // namespace dynosim::testing
