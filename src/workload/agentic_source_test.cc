// SPDX-License-Identifier: Apache-2.0
// Execution of graphs: what becomes ready when, lanes, and plays that fail.
#include "workload/agentic_source.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "workload/request.h"
#include "workload/trace_test_case.h"

namespace dynosim::workload {
namespace {

using Names = std::vector<std::string>;

constexpr std::string_view kGraphHeader =
    R"({"schema":"dynamo.agentic_mooncake","version":2,"block_size":4,"hash_id_scope":"local","source":{"format":"f","digest":"d"}})"
    "\n";

std::string Edge(std::string_view source, std::string_view trigger, double delay_ms,
                 std::string_view relation) {
  return fmt::format(R"({{"request_id":"{}","trigger":"{}","delay_ms":{},"relation":"{}"}})",
                     source, trigger, delay_ms, relation);
}

std::string Node(std::string_view id, std::string_view play, double not_before_ms,
                 std::string_view edges = "", std::string_view more = "") {
  return fmt::format(
      R"({{"request_id":"{}","play_id":"{}","session_id":"s","model":"m","input_length":4,"output_length":2,"hash_ids":[1],"not_before_ms":{},"dependencies":[{}]{}}})"
      "\n",
      id, play, not_before_ms, edges, more);
}

class AgenticSourceTest : public TraceTestCase {
 protected:
  AgenticSourceTest() : TraceTestCase("agentic_mooncake") { spec_.trace->execution_model = "m"; }
  const AgenticSource& LoadGraph(const std::string& nodes) {
    Load(std::string(kGraphHeader) + nodes);
    return *source_->Agentic();
  }
};

TEST_F(AgenticSourceTest, RootsAreReadyAtTheirTimesLessTheEarliestAndEqualTimesGoById) {
  LoadGraph(Node("c", "p", 30) + Node("b", "p", 10) + Node("a", "q", 10));
  EXPECT_EQ(source_->NextReadyMs(), 0.0);
  EXPECT_EQ(Release(0), (Names{"a", "b"}));
  EXPECT_EQ(source_->NextReadyMs(), 20.0);
  EXPECT_EQ(Release(20), Names{"c"});
  EXPECT_TRUE(source_->Exhausted());
}

TEST_F(AgenticSourceTest, ANodeWaitsForDispatchesAndCompletionsAndItsOwnTime) {
  LoadGraph(
      Node("r", "p", 0) + Node("s", "p", 0, Edge("r", "dispatch", 5, "spawn")) +
      Node("j", "p", 100,
           Edge("r", "completion", 1, "sequence") + "," + Edge("s", "completion", 2, "join")));
  EXPECT_EQ(Release(0), Names{"r"});
  EXPECT_EQ(source_->NextReadyMs(), 5.0);
  EXPECT_EQ(Release(5), Names{"s"});
  Complete("r", 50);
  EXPECT_EQ(source_->NextReadyMs(), std::nullopt);
  Complete("s", 60);
  EXPECT_EQ(source_->NextReadyMs(), 100.0);  // not before its own time
  EXPECT_EQ(Release(100), Names{"j"});
  EXPECT_EQ(requests_.back().arrival_ms, 100.0);
  Complete("j", 130);
  const AgenticSource::PlayState& play = source_->Agentic()->play(0);
  EXPECT_TRUE(play.Completed());
  EXPECT_EQ(play.first_dispatch_ms, 0.0);
  EXPECT_EQ(play.causal_terminal_ms, 130.0);
  // Three dispatches, six ends, one play.
  EXPECT_EQ(source_->Agentic()->lifecycle_events(), 10U);
}

TEST_F(AgenticSourceTest, TheSpeedupDividesTimesAndDelays) {
  spec_.arrival_speedup_ratio = 2.0;
  LoadGraph(Node("a", "p", 10) + Node("b", "p", 0, Edge("a", "completion", 8, "sequence")) +
            Node("c", "q", 30));
  EXPECT_EQ(Release(5), Names{"a"});  // b's time of 0 is the earliest
  Complete("a", 20);
  EXPECT_EQ(Release(24), (Names{"c", "b"}));
}

TEST_F(AgenticSourceTest, LanesTakePlaysInOrderAndKeepTheDistancesWithinAPlay) {
  spec_.trace->agentic_lanes = 1;
  LoadGraph(Node("x", "p2", 7) + Node("y", "p2", 12) + Node("a", "p1", 500));
  EXPECT_EQ(Release(0), Names{"a"});
  EXPECT_EQ(source_->NextReadyMs(), std::nullopt);
  Complete("a", 40);
  EXPECT_EQ(Release(40), Names{"x"});
  EXPECT_EQ(source_->NextReadyMs(), 45.0);
  EXPECT_EQ(source_->Agentic()->play(1).lane, 0U);
}

TEST_F(AgenticSourceTest, PlaysGoByTheirOrdinalsWhenTheyHaveThem) {
  spec_.trace->agentic_lanes = 1;
  LoadGraph(Node("a", "p1", 0, "", R"(,"source_play_ordinal":1)") +
            Node("b", "p2", 0, "", R"(,"source_play_ordinal":0)"));
  EXPECT_EQ(Release(0), Names{"b"});
}

TEST_F(AgenticSourceTest, ARejectedRequestFailsItsPlayAndTheLaneGoesOnWhenTheRestHasEnded) {
  spec_.trace->agentic_lanes = 1;
  LoadGraph(Node("a", "p1", 0) + Node("b", "p1", 0) +
            Node("c", "p1", 0, Edge("a", "completion", 0, "sequence")) + Node("d", "p1", 90) +
            Node("z", "p2", 0));
  EXPECT_EQ(Release(0), (Names{"a", "b"}));
  Complete("a", 10, TerminalStatus::kRejected);
  EXPECT_EQ(source_->NextReadyMs(), std::nullopt);  // c and d are skipped
  Complete("b", 30);
  const AgenticSource& agentic = *source_->Agentic();
  EXPECT_EQ(agentic.play(0).failure_status, TerminalStatus::kRejected);
  EXPECT_EQ(agentic.play(0).causal_terminal_ms, 10.0);
  EXPECT_EQ(agentic.play(0).settled_ms, 30.0);
  EXPECT_FALSE(agentic.play(0).Completed());
  // Two dispatches, four ends, two skipped, one play.
  EXPECT_EQ(agentic.lifecycle_events(), 9U);
  EXPECT_EQ(Release(30), Names{"z"});
  EXPECT_TRUE(source_->Exhausted());
}

TEST_F(AgenticSourceTest, OfFailuresAtOneTimeTheFirstByNameIsThatOfThePlay) {
  LoadGraph(Node("a", "p1", 0) + Node("b", "p1", 0) + Node("c", "p1", 0));
  EXPECT_EQ(Release(0), (Names{"a", "b", "c"}));
  Complete("c", 10, TerminalStatus::kRejected);
  Complete("b", 10, TerminalStatus::kFailed);
  Complete("a", 11, TerminalStatus::kRejected);
  const AgenticSource& agentic = *source_->Agentic();
  EXPECT_EQ(agentic.graph().nodes[agentic.play(0).failure].id, "b");
  EXPECT_EQ(agentic.play(0).failure_status, TerminalStatus::kFailed);
  EXPECT_EQ(agentic.play(0).causal_terminal_ms, 10.0);
  EXPECT_EQ(agentic.play(0).settled_ms, 11.0);
}

TEST_F(AgenticSourceTest, TheRootAndTheParentOfARowAreTheOnlyRootAndTheFirstSpawner) {
  const AgenticSource& one = LoadGraph(
      Node("a", "p", 0) + Node("b", "p", 0, Edge("a", "dispatch", 0, "spawn")) +
      Node("c", "p", 0,
           Edge("b", "completion", 0, "spawn") + "," + Edge("a", "dispatch", 0, "spawn")));
  EXPECT_EQ(one.OnlyRoot(0), 0U);
  EXPECT_EQ(one.Parent(2), 0U);
  EXPECT_EQ(one.Parent(0), kNone);
  const AgenticSource& two = LoadGraph(Node("a", "p", 0) + Node("b", "p", 0));
  EXPECT_EQ(two.OnlyRoot(0), kNone);
}

}  // namespace
}  // namespace dynosim::workload
