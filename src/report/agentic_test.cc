// SPDX-License-Identifier: Apache-2.0
// Reports of graphs: trajectories, play outcomes and the row members.
#include "report/agentic.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "report/sample_outcome.h"
#include "scenario/scenario.h"
#include "workload/agentic_builder.h"
#include "workload/agentic_source.h"
#include "workload/request.h"

namespace dynosim::report {
namespace {

workload::AgenticGraph Graph() {
  workload::AgenticBuilder builder(4);
  const auto add = [&builder](const std::string& id, const std::string& play,
                              std::vector<workload::AgenticDependency> dependencies) {
    workload::AgenticRequest request{.where = "here"};
    request.request_id = id;
    request.play_id = play;
    request.session_id = "s";
    request.model = "m-" + play;
    request.input_tokens = 4;
    request.output_tokens = 1;
    request.hash_ids = {1};
    request.dependencies = std::move(dependencies);
    EXPECT_TRUE(builder.Add(std::move(request)).has_value());
  };
  add("a", "p", {});
  add("b", "p", {{.request_id = "a", .relation = workload::AgenticRelation::kSpawn}});
  add("c", "q", {});
  auto graph = builder.Finish("here");
  EXPECT_TRUE(graph.has_value());
  graph->source_format = "f";
  return std::move(*graph);
}

// Runs play p to its end at 30 and rejects play q at 12.
void Play(workload::AgenticSource& source) {
  workload::Request request;
  while (source.Release(0, request)) {
  }
  source.OnTerminal(2, 12, workload::TerminalStatus::kRejected, 0);
  source.OnTerminal(0, 20, workload::TerminalStatus::kCompleted, 1);
  while (source.Release(20, request)) {
  }
  source.OnTerminal(1, 30, workload::TerminalStatus::kCompleted, 1);
}

TEST(AgenticReport, CountsPlaysAndTellsHowEachEnded) {
  workload::AgenticSource source(Graph(), std::nullopt);
  Play(source);
  scenario::Scenario scenario;
  scenario.workload.trace.emplace().execution_model = "target";
  const AgenticSummary summary = SummarizeAgentic(source, scenario);
  EXPECT_EQ(summary.total_trajectories, 2U);
  EXPECT_EQ(summary.completed_trajectories, 1U);
  EXPECT_EQ(summary.trajectory_e2e_latency_ms.mean, 30.0);
  EXPECT_EQ(
      DumpJson(*summary.details.Find("agentic_play_outcomes")),
      R"([{"play_id":"p","status":"completed","causal_terminal_ms":30.0,"settled_at_ms":30.0},)"
      R"({"play_id":"q","status":"failed","causal_terminal_ms":12.0,"settled_at_ms":12.0,)"
      R"("failure_request_id":"c","failure_status":"rejected"}])");
  EXPECT_EQ(DumpJson(*summary.details.Find("agentic_graph")),
            R"({"source":{"format":"f"},"block_size":4,"node_count":3,"play_count":2,)"
            R"("source_models":["m-p","m-q"]})");
  EXPECT_EQ(DumpJson(*summary.details.Find("agentic_model_projection")),
            R"({"policy":"project_to_configured_target","source_models":["m-p","m-q"],)"
            R"("target_model":"target"})");
  EXPECT_EQ(summary.details.Find("weka_nested_timestamp_basis"), nullptr);
}

TEST(AgenticReport, APlayThatHasNotBegunIsIncomplete) {
  workload::AgenticSource source(Graph(), std::nullopt);
  const AgenticSummary summary = SummarizeAgentic(source, {});
  EXPECT_EQ(DumpJson(*summary.details.Find("agentic_play_outcomes")),
            R"([{"play_id":"p","status":"incomplete"},{"play_id":"q","status":"incomplete"}])");
}

TEST(AgenticReport, RowsNameLaneRootAndParent) {
  workload::AgenticSource source(Graph(), 2);
  const auto row = [&source](std::uint32_t node) {
    return TextOf({}, [&](JsonWriter& out) { WriteAgenticRow(out, source, node); });
  };
  EXPECT_EQ(
      row(1),
      R"({"request_id":"b","play_id":"p","conversation_id":"s","lane_id":"lane:0","root_id":"a","parent_id":"a"})");
  EXPECT_EQ(
      row(2),
      R"({"request_id":"c","play_id":"q","conversation_id":"s","lane_id":"lane:1","root_id":"c"})");
}

}  // namespace
}  // namespace dynosim::report
