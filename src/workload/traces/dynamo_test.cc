// SPDX-License-Identifier: Apache-2.0
// Dynamo request traces: lists, sessions with children, and every error.
#include "workload/traces/dynamo.h"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "workload/trace_test_case.h"

namespace dynosim::workload {
namespace {

using Names = std::vector<std::string>;

std::string Context(std::string_view session, std::string_view parent = "") {
  return parent.empty()
             ? fmt::format(R"(,"agent_context":{{"session_id":"{}"}})", session)
             : fmt::format(R"(,"agent_context":{{"session_id":"{}","parent_session_id":"{}"}})",
                           session, parent);
}

std::string Row(std::string_view id, int received, int total, std::string_view more = "") {
  return fmt::format(
      R"({{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":{},"request":{{"request_id":"{}","output_tokens":2,"request_received_ms":{},"total_time_ms":{},"replay":{{"trace_block_size":4,"input_length":4,"input_sequence_hashes":[{}]}}}}{}}})"
      "\n",
      received + total, id, received, total, received, more);
}

std::string Tool(std::string_view claude) {
  return fmt::format(
      R"({{"schema":"dynamo.request.trace.v1","event_type":"tool_end","event_time_unix_ms":1,"agent_context":{{"session_id":"P"}},"tool":{{"tool_call_id":"T","tool_class":"agent","claude":{{{}}}}}}})"
      "\n",
      claude);
}

class DynamoTest : public TraceTestCase {
 protected:
  DynamoTest() : TraceTestCase("dynamo") { spec_.trace->execution_model = "m"; }
};

TEST_F(DynamoTest, RequestsWithoutContextAreAListInOrderOfTimeOverAllFiles) {
  spec_.trace->files.push_back((folder_ / "two.jsonl").string());
  Write("two.jsonl", Row("b", 100, 5));
  Load("[1]\n\n" + Row("c", 130, 5) + R"({"event":)" +
       Row("a", 120, 5).substr(0, Row("a", 120, 5).size() - 1) + "}\n" +
       R"({"event_type":"request_payload","schema":1})");
  EXPECT_EQ(source_->Agentic(), nullptr);
  EXPECT_EQ(source_->RequestCount(), 3U);
  EXPECT_EQ(Release(25), (Names{"0", "1"}));
  EXPECT_EQ(requests_[1].arrival_ms, 20.0);
  EXPECT_EQ(source_->NextReadyMs(), 30.0);
}

TEST_F(DynamoTest, TimesWithoutAReceiptComeFromTheEnd) {
  std::string row = Row("b", 90, 30);  // ends at 120
  const std::string received = R"("request_received_ms":90,)";
  row.erase(row.find(received), received.size());
  Load(Row("a", 100, 5) + row);
  EXPECT_EQ(Release(1000), (Names{"0", "1"}));
  EXPECT_EQ(requests_[1].arrival_ms, 10.0);
}

TEST_F(DynamoTest, TurnsOfASessionFollowEachOther) {
  Load(Row("a", 100, 10, Context("s")) + Row("b", 125, 5, Context("s")));
  EXPECT_EQ(EdgesInto("b"), Names{"a completion sequence 15"});
  EXPECT_EQ(source_->Agentic()->graph().plays[0].id, "dynamo-play:a");
  EXPECT_EQ(source_->Agentic()->graph().source_digest, "requests:2;tools:0");
}

TEST_F(DynamoTest, AChildStartsFromAndJoinsTheRequestsOfItsToolCall) {
  Load(
      Row("ps", 100, 10, Context("P")) + Row("c1", 120, 10, Context("C", "P")) +
      Row("c2", 150, 10, Context("C", "P")) + Row("pc", 200, 10, Context("P")) +
      Tool(
          R"("source_request_id":"ps","consumer_request_id":"pc","child_session_id":"C","execution_mode":"blocking")"));
  EXPECT_EQ(EdgesInto("c1"), Names{"ps dispatch spawn 20"});
  EXPECT_EQ(EdgesInto("pc"), (Names{"ps completion sequence 90", "c2 completion join 40"}));
}

TEST_F(DynamoTest, AChildWithoutAToolCallIsPlacedByTime) {
  Load(Row("p1", 100, 10, Context("P")) + Row("p2", 115, 5, Context("P")) +
       Row("c1", 118, 12, Context("C", "P")) + Row("p3", 140, 5, Context("P")));
  EXPECT_EQ(EdgesInto("c1"), Names{"p2 dispatch spawn 3"});
  EXPECT_EQ(EdgesInto("p3"), (Names{"p2 completion sequence 20", "c1 completion join 10"}));
}

TEST_F(DynamoTest, UnrelatedSessionsAreDifferentPlays) {
  Load(Row("a", 100, 10, Context("s")) + Row("b", 130, 5, Context("t")));
  EXPECT_EQ(source_->Agentic()->graph().plays.size(), 2U);
  EXPECT_EQ(source_->Agentic()->graph().nodes[1].not_before_ms, 30.0);
}

TEST_F(DynamoTest, ErrorsOfRecordsNameFileAndLine) {
  EXPECT_EQ(ErrorOf("garbage"), "t.jsonl:1: the line is not valid JSON");
  EXPECT_EQ(ErrorOf("{}"), "t.jsonl:1: event_type is missing");
  EXPECT_EQ(ErrorOf(R"({"event":3})"), "t.jsonl:1: event must be an object");
  EXPECT_EQ(ErrorOf(R"({"event_type":"x"})"),
            "t.jsonl:1: event_type must be request_end, request_payload, tool_start, tool_end or "
            R"(tool_error, got "x")");
  EXPECT_EQ(ErrorOf("3\n"), "t.jsonl: the trace contains no request_end records");
  EXPECT_EQ(ErrorOf(Row("a", 1, 1) + Row("a", 2, 1)),
            R"(t.jsonl:2: request_id "a" is given twice)");
  EXPECT_EQ(ErrorOf(Row("a", 1, -1)),
            "t.jsonl:1: request.total_time_ms must be finite and at least 0, got -1");
  EXPECT_EQ(
      ErrorOf(Row("a", 1, 1) + Row("b", 2, 1, Context("s"))),
      "t.jsonl:2: either all requests or none have an agent_context, but this trace mixes them");
  const auto changed = [](std::string_view from, std::string_view to) {
    std::string row = Row("a", 1, 1);
    row.replace(row.find(from), from.size(), to);
    return row;
  };
  EXPECT_EQ(
      ErrorOf(changed("trace.v1", "trace.v2")),
      R"(t.jsonl:1: schema must be "dynamo.request.trace.v1", got "dynamo.request.trace.v2")");
  EXPECT_EQ(ErrorOf(changed(R"("output_tokens":2,)", "")),
            "t.jsonl:1: request.output_tokens is missing");
  EXPECT_EQ(ErrorOf(changed(R"("input_length":4)", R"("input_length":4.5)")),
            "t.jsonl:1: request.replay.input_length must be a whole number of at least 0");
  EXPECT_EQ(ErrorOf(changed(R"("input_length":4)", R"("input_length":9)")),
            "t.jsonl:1: input_length 9 exceeds the capacity 4 of its hash_ids (1 ids of 4 tokens) "
            "(line 1 in order of time)");
  EXPECT_EQ(
      ErrorOf(changed(R"("trace_block_size":4)", R"("trace_block_size":0)")),
      "t.jsonl:1: request.replay.trace_block_size must be greater than 0 (embedded trace block "
      "size)");
  spec_.trace->block_size = 8;
  EXPECT_EQ(ErrorOf(Row("a", 1, 1)),
            "--trace-block-size: is 8, but the trace_block_size of the trace is 4");
}

TEST_F(DynamoTest, ErrorsOfSessionsAndToolsNameThem) {
  EXPECT_EQ(
      ErrorOf(Row("a", 100, 50, Context("s")) + Row("b", 120, 5, Context("s"))),
      "t.jsonl:2 (line 3 in order of time): request 'b' depends on 'a' with the invalid delay "
      "-30 ms; a dependency delay must be finite and at least 0");
  EXPECT_EQ(ErrorOf(Row("a", 1, 1, Context("C", "P"))),
            R"(t.jsonl:1: session "C" has the unknown parent session "P")");
  EXPECT_EQ(ErrorOf(Row("a", 1, 1, Context("P")) + Row("b", 3, 1, Context("Q")) +
                    Row("c", 5, 1, Context("C", "P")) + Row("d", 7, 1, Context("C", "Q"))),
            R"(t.jsonl:4: session "C" has two values of parent_session_id, "P" and "Q")");
  const std::string a = Row("a", 1, 1, Context("P"));
  EXPECT_EQ(ErrorOf(a + Tool(R"("source_request_id":"x","execution_mode":"blocking")")),
            R"(t.jsonl:2: tool "T" names the unknown request_id "x")");
  EXPECT_EQ(
      ErrorOf(a + Tool(R"("source_request_id":"a","execution_mode":"x")")),
      R"(t.jsonl:2: execution_mode of tool "T" (agent) must be blocking or background, got "x")");
  const std::string child =
      Tool(R"("source_request_id":"a","child_session_id":"P","execution_mode":"blocking")");
  EXPECT_EQ(ErrorOf(a + child + child),
            R"(t.jsonl:3: a second tool event names the child session "P")");
  spec_.trace->agentic_lanes = 1;
  EXPECT_EQ(ErrorOf(Row("a", 1, 1)),
            "--agentic-lanes: agentic_lanes needs a trace with agent contexts");
}

}  // namespace
}  // namespace dynosim::workload
