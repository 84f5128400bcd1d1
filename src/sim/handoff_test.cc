// SPDX-License-Identifier: Apache-2.0
#include "sim/handoff.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "base/result.h"
#include "engine/effects.h"
#include "engine/settings.h"
#include "router/router.h"
#include "sim/outcome.h"
#include "workload/request.h"

namespace dynosim::sim {
namespace {

// One prefill worker (place 0) and one decode worker (place 1). Ranks are those that the test
// names, workers are busy when it says so, and every reservation is granted.
class Workers final : public HandoffHost, public HandoffListener {
 public:
  Result<void> Place(Pool pool, const workload::Request& request, std::uint32_t, double,
                     std::vector<router::Decision>& made) override {
    const std::uint32_t rank = (pool == Pool::kDecode ? decode_rank : source_rank)[request.id];
    made.push_back({.request = request, .target = {.worker = 0, .rank = rank}});
    return {};
  }
  void PrefillDone(std::uint32_t, double, std::vector<router::Decision>&) override {}
  void LeaveRouter(Pool, std::uint32_t, double, std::vector<router::Decision>&) override {}
  void CancelPending(std::uint32_t) override {}
  void Settle(std::uint32_t, double) override {}
  bool Busy(std::uint32_t place) const override { return busy[place]; }
  void SubmitPrompt(const HandoffSide&, const workload::Request&, double) override {}
  bool QueueReservation(const HandoffSide&, const workload::Request& request, double,
                        engine::Rejection&) override {
    pending_.push_back(request.id);
    return true;
  }
  std::optional<engine::Grant> TryReserve(const HandoffSide&) override {
    if (pending_.empty()) {
      return std::nullopt;
    }
    const std::uint32_t request = pending_.front();
    pending_.pop_front();
    return engine::Grant{.request = request};
  }
  void Activate(const HandoffSide&, std::uint32_t request) override {
    activated.push_back(request);
  }
  void ReleaseSource(const HandoffSide&, std::uint32_t request, double) override {
    released.push_back(request);
  }
  void CancelSource(const HandoffSide&, std::uint32_t, double) override {}
  void CancelDestination(const HandoffSide&, std::uint32_t) override {}
  void OnStep(HandoffStep, std::uint32_t, double, double) override {}
  void OnUnrouted(std::uint32_t, const Error&, double) override { FAIL(); }
  void OnRefused(std::uint32_t, const engine::Rejection&, workload::TerminalStatus,
                 double) override {
    FAIL();
  }

  std::vector<std::uint32_t> source_rank, decode_rank;  // by request
  std::vector<bool> busy = {false, false};
  std::vector<std::uint32_t> activated, released;

 private:
  std::deque<std::uint32_t> pending_;
};

// What waits for the end of a pass goes on by rank; of one rank, in the order in which it came.
TEST(Handoffs, WhatWaitedForAPassGoesOnRankByRank) {
  engine::EngineSettings settings;
  settings.kv_transfer_bytes_per_token = 1000;
  settings.kv_transfer_bandwidth_gbps = 0.008;  // 8 tokens take 1 ms
  Workers workers;
  workers.decode_rank = {2, 0, 1, 0};
  workers.source_rank = {0, 1, 0, 1};
  Handoffs handoffs({.prefill = settings, .decode = settings}, workers, workers);
  engine::PassEffects prefilled;
  for (std::uint32_t id = 0; id < 4; ++id) {
    handoffs.Submit({.id = id, .prompt_tokens = 8, .output_tokens = 1}, workload::kNone);
    prefilled.held.push_back(id);
  }
  handoffs.Act(0.0);
  handoffs.Offer(0, 0, prefilled, 1.0);
  handoffs.Act(1.0);
  ASSERT_EQ(handoffs.NextTransferMs(), 2.0);

  workers.busy = {true, true};
  handoffs.Act(2.0);
  ASSERT_TRUE(workers.activated.empty());
  workers.busy = {true, false};
  handoffs.PassEnded(1);
  handoffs.Act(3.0);
  EXPECT_EQ(workers.activated, (std::vector<std::uint32_t>{1, 3, 2, 0}));

  ASSERT_TRUE(workers.released.empty());
  workers.busy = {false, false};
  handoffs.PassEnded(0);
  handoffs.Act(4.0);
  EXPECT_EQ(workers.released, (std::vector<std::uint32_t>{2, 0, 1, 3}));
}

}  // namespace
}  // namespace dynosim::sim
