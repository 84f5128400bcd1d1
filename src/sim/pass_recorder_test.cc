// SPDX-License-Identifier: Apache-2.0
// Passes of a worker: starts after a gap, ends copied before the log forgets them, and what each
// pass did.
#include "sim/pass_recorder.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/effects.h"
#include "engine/pass_log.h"
#include "sim/outcome.h"

namespace dynosim::sim {
namespace {

std::string Text(PassRecorder& recorder, double end_ms) {
  std::vector<PassRecord> passes;
  recorder.MoveTo(passes, end_ms);
  std::string text;
  for (const PassRecord& pass : passes) {
    text += fmt::format("{}..{} {} {};", pass.start_ms, pass.end_ms, pass.prefill_tokens,
                        pass.requests);
  }
  return text;
}

TEST(PassRecorder, APassStartsAtTheEndOfTheOneBeforeUnlessTheWorkerWasIdle) {
  PassRecorder recorder(Pool::kAggregated, 0);
  engine::PassLog log;
  for (const double end_ms : {2.0, 3.0, 8.0}) {
    log.Append(end_ms);
  }
  recorder.OnStart(1, 1.0);
  recorder.OnPrefill(1, 10);
  recorder.OnPrefill(1, 5);
  recorder.OnStart(3, 6.0);
  recorder.OnCompleted({.tokens = 2, .first_burst = 1, .spans = {{1, 2}}});
  recorder.OnCompleted({.tokens = 2, .first_burst = 1, .spans = {{2, 3}}});
  recorder.Settle(4, log);
  EXPECT_EQ(Text(recorder, 8.0), "1..2 15 1;2..3 0 2;6..8 0 1;");
}

TEST(PassRecorder, KeepsEndsThatTheLogDrops) {
  PassRecorder recorder(Pool::kAggregated, 0);
  engine::PassLog log;
  log.Append(1.0);
  log.Append(2.0);
  recorder.OnStart(1, 0.0);
  recorder.Settle(2, log);
  log.DropBefore(2);
  log.Append(3.0);
  recorder.Settle(4, log);
  EXPECT_EQ(Text(recorder, 3.0), "0..1 0 0;1..2 0 0;2..3 0 0;");
}

TEST(PassRecorder, PlannedPassesBeyondTheEndOfTheRunDidNotHappen) {
  PassRecorder recorder(Pool::kAggregated, 0);
  engine::PassLog log;
  log.Append(1.0);
  log.Append(2.0);
  recorder.OnStart(1, 0.0);
  recorder.Settle(3, log);
  EXPECT_EQ(Text(recorder, 1.5), "0..1 0 0;");
}

}  // namespace
}  // namespace dynosim::sim
