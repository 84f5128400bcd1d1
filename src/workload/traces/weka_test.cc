// SPDX-License-Identifier: Apache-2.0
// Weka corpora: names, nested times, edges, block ids, files and every error.
#include "workload/traces/weka.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "workload/trace_test_case.h"

namespace dynosim::workload {
namespace {

using Names = std::vector<std::string>;

std::string Object(std::string_view requests, std::string_view more = "") {
  return fmt::format(R"({{"id":"w1","block_size":4,"hash_id_scope":"local",{}"requests":[{}]}})"
                     "\n",
                     more, requests);
}

std::string Request(double t, double api_time, std::string_view hashes, int in = 8) {
  return fmt::format(
      R"({{"t":{},"type":"n","model":"m","in":{},"out":2,"api_time":{},"hash_ids":[{}]}})", t, in,
      api_time, hashes);
}

std::string Subagent(double t, std::string_view status, std::string_view requests,
                     std::string_view more = "") {
  return fmt::format(
      R"({{"type":"subagent","t":{},"agent_id":"A","status":"{}",{}"requests":[{}]}})", t, status,
      more, requests);
}

class WekaTest : public TraceTestCase {
 protected:
  WekaTest() : TraceTestCase("weka", "weka_subagent.jsonl") { spec_.trace->execution_model = "m"; }
  const AgenticGraph& LoadGraph(std::string_view text) {
    Load(text);
    return source_->Agentic()->graph();
  }
  // Edges of the request with this end of its id; ids without their common beginning.
  Names Edges(const std::string& end) const {
    const AgenticGraph& graph = source_->Agentic()->graph();
    const std::string prefix = graph.nodes[0].id.substr(0, graph.nodes[0].id.find("outer"));
    Names edges = EdgesInto(prefix + end);
    for (std::string& edge : edges) {
      edge.erase(0, prefix.size());
    }
    return edges;
  }
};

TEST_F(WekaTest, NamesCarryTheDigestOfTheSource) {
  const AgenticGraph& graph = LoadGraph(Object(Request(0, 0, "1, 2")));
  EXPECT_EQ(graph.nodes[0].id, "weka:6fdc02d57c32fcc1:request:outer:0");
  EXPECT_EQ(graph.plays[0].id, "weka:6fdc02d57c32fcc1:play:w1");
  EXPECT_EQ(graph.sessions[0], "weka:6fdc02d57c32fcc1:session:root");
  EXPECT_EQ(graph.nested_timestamp_basis, "not_applicable");
}

TEST_F(WekaTest, TurnsOfAStreamAndForksFollowTheirSources) {
  LoadGraph(Object(Request(0, 0.01, "1, 2") + "," + Request(0.1, 0.01, "1, 2, 3", 12) + "," +
                   Request(0.15, 0.01, "1, 2, 7", 12) + "," +
                   Request(0.3, 0.01, "1, 2, 3, 4", 16)));
  EXPECT_EQ(Edges("outer:1"), Names{"outer:0 completion sequence 90"});
  EXPECT_EQ(Edges("outer:2"),
            (Names{"outer:1 completion spawn 40", "outer:1 completion replay_barrier 0"}));
  EXPECT_EQ(Edges("outer:3"),
            (Names{"outer:1 completion sequence 190", "outer:2 completion replay_barrier 0"}));
}

TEST_F(WekaTest, ARequestWithinItsSourceIsDispatchedWithIt) {
  LoadGraph(Object(Request(0, 1, "1, 2") + "," + Request(0.5, 0.1, "1, 3")));
  EXPECT_EQ(Edges("outer:1"), Names{"outer:0 dispatch spawn 500"});
}

TEST_F(WekaTest, StreamsThatShareNothingStartFromTheRoot) {
  LoadGraph(Object(Request(0, 5, "1, 2") + "," + Request(0.5, 5, "8, 9") + "," +
                   Request(6, 0, "1, 2, 3", 12)));
  // The first request shares nothing with the second, but begins the third: it is no preamble.
  EXPECT_EQ(Edges("outer:1"), Names{"outer:0 dispatch spawn 500"});
  EXPECT_EQ(Edges("outer:2"),
            (Names{"outer:0 completion sequence 1000", "outer:1 completion replay_barrier 0"}));
}

TEST_F(WekaTest, ABlockingSubagentIsJoinedAndABackgroundOneIsNot) {
  const std::string outer = Request(0, 0.1, "1, 2");
  const std::string inner = Request(0.2, 0.1, "7");
  const std::string next = Request(0.5, 0.1, "1, 2, 3", 12);
  LoadGraph(Object(outer + "," + Subagent(0.2, "completed", inner) + "," + next));
  EXPECT_EQ(Edges("outer:1:inner:0"), Names{"outer:0 completion spawn 100"});
  EXPECT_EQ(Edges("outer:2"),
            (Names{"outer:0 completion sequence 400", "outer:1:inner:0 completion join 200"}));
  EXPECT_EQ(source_->Agentic()->graph().sessions.back(),
            "weka:6fdc02d57c32fcc1:session:subagent:1:A");
  LoadGraph(Object(outer + "," + Subagent(0.2, "async_launched", inner) + "," + next));
  EXPECT_EQ(Edges("outer:2"), Names{"outer:0 completion sequence 400"});
  LoadGraph(Object(outer + "," + Subagent(0.2, "async_launched", "") + "," + next));
  EXPECT_EQ(source_->RequestCount(), 2U);
  // The subagent lasts longer than its requests and than the next one's start.
  LoadGraph(Object(outer + "," + Subagent(0.2, "completed", inner, R"("duration_ms":400,)") + "," +
                   next));
  EXPECT_EQ(Edges("outer:2"), Names{"outer:0 completion sequence 400"});
}

TEST_F(WekaTest, NestedTimesAreRelativeWhenOneIsBeforeItsSubagent) {
  const std::string relative =
      Object(Request(0, 0.1, "1, 2") + "," + Subagent(0.2, "completed", Request(0.05, 0.1, "7")));
  EXPECT_EQ(LoadGraph(relative).nested_timestamp_basis, "relative");
  EXPECT_EQ(source_->Agentic()->graph().nodes[1].not_before_ms, 250.0);
  spec_.trace->weka_nested_timestamp_basis = "absolute";
  EXPECT_NE(ErrorOf(relative).find("weka_nested_timestamp_basis"), std::string::npos);
  const std::string absolute =
      Object(Request(0, 0.1, "1, 2") + "," + Subagent(0.2, "completed", Request(0.2, 0.1, "7")));
  EXPECT_EQ(LoadGraph(absolute).nested_timestamp_basis, "absolute");
  spec_.trace->weka_nested_timestamp_basis = "relative";
  LoadGraph(absolute);
  EXPECT_EQ(source_->Agentic()->graph().nodes[1].not_before_ms, 400.0);
  spec_.trace->weka_nested_timestamp_basis = "x";
  EXPECT_EQ(ErrorOf(absolute),
            "--weka-nested-timestamp-basis: must be auto, absolute or relative, got 'x'");
}

TEST_F(WekaTest, OnlyFullBlocksWithEqualHashesOfOneObjectAreShared) {
  // 6 tokens: one full block and a part of another.
  LoadGraph(Object(Request(0, 0, "1, 2", 6) + "," + Request(1, 0, "1, 2", 6)) +
            Object(Request(0, 0, "1, 2", 6)));
  const auto first = Prompt(0);
  const auto second = Prompt(1);
  const auto other = Prompt(2);
  EXPECT_EQ(first[0], second[0]);
  EXPECT_NE(first[4], second[4]);
  EXPECT_NE(first[0], other[0]);
}

TEST_F(WekaTest, ACorpusIsAFileOrAFolder) {
  const std::string object = Object(Request(0, 0, "1, 2"));
  Write("corpus/b/one.json", object);
  Write("corpus/a.jsonl", object + " " + object);
  Write("corpus/notes.txt", "x");
  spec_.trace->files = {(folder_ / "corpus").string()};
  LoadFiles();
  EXPECT_EQ(source_->RequestCount(), 3U);
  EXPECT_EQ(source_->Agentic()->graph().plays.size(), 3U);
  std::filesystem::create_symlink(folder_ / "corpus/a.jsonl", folder_ / "corpus/c.jsonl");
  EXPECT_NE(ErrorOf("").find("is a symbolic link"), std::string::npos);
  spec_.trace->files = {(folder_ / "corpus/notes.txt").string()};
  EXPECT_EQ(ErrorOf(""), "corpus/notes.txt: must be a folder or end in .json or .jsonl");
  Write("two.json", object + object);
  spec_.trace->files = {(folder_ / "two.json").string()};
  EXPECT_EQ(ErrorOf(""),
            "two.json:2: a .json file holds one object; files of several objects end in .jsonl");
}

TEST_F(WekaTest, ErrorsNameFileLineAndEntry) {
  const std::string good = Request(0, 0, "1, 2");
  const auto changed = [&good](std::string_view from, std::string_view to) {
    std::string request = good;
    request.replace(request.find(from), from.size(), to);
    return Object(request);
  };
  const std::string at = "weka_subagent.jsonl:1: ";
  EXPECT_EQ(ErrorOf(""), "weka_subagent.jsonl: the corpus contains no objects");
  EXPECT_EQ(ErrorOf("[]"), at + "the line is a JSON array; one JSON object per line is needed");
  EXPECT_EQ(
      ErrorOf(changed(R"("type":"n")", R"("type":"x")")),
      at + R"(requests[0] must have the type n or s (or subagent, in the outer list), got "x")");
  EXPECT_EQ(
      ErrorOf(changed(R"("in":8)", R"("in":0)")),
      at + "requests[0] must have in from 1 to 10000000 and out from 0 to 10000000, got 0 and 2");
  EXPECT_EQ(ErrorOf(changed(R"("t":0)", R"("t":-1)")),
            at + "requests[0] must have t and api_time of at least 0 seconds");
  EXPECT_EQ(ErrorOf(changed(R"("model":"m",)", "")), at + "requests[0] has no model");
  EXPECT_EQ(
      ErrorOf(Object(good, R"("models":["z"],)")),
      at + R"(weka_subagent.jsonl#000000: a request has the model "m", which is not in models)");
  EXPECT_EQ(
      ErrorOf(Object(good + "," + Subagent(0, "failed", ""))),
      at +
          R"(requests[1] of the subagent A has the status "failed"; it must be completed or async_launched)");
  EXPECT_EQ(ErrorOf(Object(good + "," + Subagent(0, "completed", ""))),
            at + "requests[1] of the subagent A has no requests, but it is completed");
  spec_.trace->block_size = 8;
  EXPECT_EQ(ErrorOf(Object(good)),
            "--trace-block-size: is 8, but the block_size of the corpus is 4");
}

}  // namespace
}  // namespace dynosim::workload
