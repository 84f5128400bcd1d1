// SPDX-License-Identifier: Apache-2.0
// Converted traces hold the same requests; facts of traces; units of time.
#include "workload/trace_writer.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "workload/time_unit.h"
#include "workload/trace_facts.h"
#include "workload/trace_test_case.h"
#include "workload/traces/contents.h"
#include "workload/traces/registry.h"

namespace dynosim::workload {
namespace {

class TraceWriterTest : public TraceTestCase {
 protected:
  TraceWriterTest() : TraceTestCase("mooncake") {
    spec_.trace->block_size = 4;
    spec_.trace->execution_model = "m";
  }
  TraceContents Read(std::string_view text) {
    Write(file_, text);
    auto contents = ReadTraceContents(spec_, *spec_.trace);
    EXPECT_TRUE(contents.has_value()) << contents.error().Text();
    return std::move(*contents);
  }
  std::string Written(std::string_view text, const WriteOptions& options = {}) {
    std::string out;
    WriteTrace(Read(text), options, [&out](std::string_view line) { out += line; });
    return out;
  }
};

constexpr std::string_view kSessions =
    R"({"session_id": "s", "timestamp": 5.0, "input_length": 6, "output_length": 2, "hash_ids": [0, 1]}
{"timestamp": 1.5, "input_length": 4, "output_length": 1, "hash_ids": [0], "output_token_ids": [9], "priority": -2, "strict_priority": 3, "policy_class": "gold"}
{"session_id": "s", "delay": 2.5, "input_length": 8, "output_length": 2, "hash_ids": [0, 2]}
)";

TEST_F(TraceWriterTest, WrittenTablesAreTheSameAgain) {
  EXPECT_EQ(Written(kSessions), kSessions);
  spec_.trace->format = "mooncake-delta";
  EXPECT_EQ(Written(kSessions), kSessions);
}

TEST_F(TraceWriterTest, IdsAreNumberedInTheirOrder) {
  const std::string row =
      R"({"timestamp":0,"input_length":8,"output_length":1,"hash_ids":[70,50]})";
  EXPECT_EQ(Written(row),
            R"({"timestamp": 0.0, "input_length": 8, "output_length": 1, "hash_ids": [0, 1]})"
            "\n");
}

TEST_F(TraceWriterTest, FixedTablesAreInOrderFromZeroInMilliseconds) {
  EXPECT_EQ(
      Written(kSessions, {.by_time = true, .time_factor = 1000.0}),
      R"({"timestamp": 0.0, "input_length": 4, "output_length": 1, "hash_ids": [0], "output_token_ids": [9], "priority": -2, "strict_priority": 3, "policy_class": "gold"}
{"session_id": "s", "timestamp": 3500.0, "input_length": 6, "output_length": 2, "hash_ids": [0, 1]}
{"session_id": "s", "delay": 2500.0, "input_length": 8, "output_length": 2, "hash_ids": [0, 2]}
)");
}

TEST_F(TraceWriterTest, WrittenGraphsAreTheSameAgain) {
  const std::string_view graph =
      R"({"schema": "dynamo.agentic_mooncake", "version": 2, "block_size": 4, "hash_id_scope": "local", "source": {"format": "f", "digest": "d"}}
{"request_id": "a", "play_id": "p", "session_id": "s", "model": "m", "input_length": 4, "output_length": 1, "hash_ids": [0], "not_before_ms": 0.0, "recorded_api_time_ms": 3.5, "output_token_ids": [9], "dependencies": []}
{"request_id": "b", "play_id": "p", "session_id": "s", "model": "m", "input_length": 5, "output_length": 1, "hash_ids": [0, 1], "not_before_ms": 7.0, "priority": 1, "dependencies": [{"request_id": "a", "trigger": "completion", "delay_ms": 1.5, "relation": "sequence"}]}
)";
  spec_.trace->format = "agentic_mooncake";
  EXPECT_EQ(Written(graph), graph);
}

TEST_F(TraceWriterTest, FactsCountWhatACacheWithoutLimitsWouldHold) {
  Load(R"({"timestamp":0,"input_length":10,"output_length":3,"hash_ids":[1,2,3]}
{"timestamp":10,"input_length":12,"output_length":1,"hash_ids":[1,2,4]}
{"timestamp":100,"input_length":4,"output_length":1,"hash_ids":[2]}
)");
  const TraceFacts facts = FindTraceFacts(*source_, 4);
  EXPECT_EQ(facts.requests, 3U);
  EXPECT_EQ(facts.reusable_tokens, 8U);
  EXPECT_EQ(facts.distinct_blocks, 4U);  // 1, 2, 4 behind them, and 2 alone; parts do not count
  EXPECT_EQ(facts.input.total, 26U);
  EXPECT_EQ(facts.input.median, 10U);
  EXPECT_EQ(facts.output.max, 3U);
  EXPECT_EQ(facts.last_arrival_ms, 100.0);
  EXPECT_EQ(facts.arrivals[0], 1U);
  EXPECT_EQ(facts.arrivals[1], 1U);
  EXPECT_EQ(facts.arrivals[9], 1U);
}

TEST_F(TraceWriterTest, FactsOfSessionsCountTheConversation) {
  spec_.trace->format = "mooncake-delta";
  Load(R"({"session_id":"s","timestamp":0,"input_length":8,"output_length":4,"hash_ids":[1,2]}
{"session_id":"s","delay":5,"input_length":4,"output_length":1,"hash_ids":[3]}
)");
  const TraceFacts facts = FindTraceFacts(*source_, 4);
  EXPECT_EQ(facts.input.total, 8U + 16U);
  EXPECT_EQ(facts.reusable_tokens, 12U);  // the first prompt and its output
}

TraceTable Times(double first, double gap, int count) {
  TraceTable table;
  for (int i = 0; i < count; ++i) {
    table.sessions.push_back({.first_ms = first + gap * i});
  }
  return table;
}

TEST(TimeUnit, SizeAndDensityGiveTheUnitAway) {
  EXPECT_EQ(GuessTimeUnit(Times(0, 300, 100)).name, "ms");
  EXPECT_EQ(GuessTimeUnit(Times(0, 0.003, 100)).name, "s");
  EXPECT_EQ(GuessTimeUnit(Times(0, 3e6, 100)).name, "us");
  EXPECT_EQ(GuessTimeUnit(Times(0, 3e9, 100)).name, "ns");
  EXPECT_EQ(GuessTimeUnit(Times(1.7e9, 1, 3)).name, "s");
  EXPECT_EQ(GuessTimeUnit(Times(1.7e12, 1, 3)).name, "ms");
  EXPECT_EQ(GuessTimeUnit(Times(1.7e15, 1, 3)).name, "us");
  EXPECT_EQ(GuessTimeUnit(Times(1.7e18, 1, 3)).name, "ns");
  EXPECT_EQ(GuessTimeUnit(Times(0, 0, 100)).name, "ms");
  EXPECT_EQ(GuessTimeUnit(Times(0, 0.001, 3)).name, "ms");
  EXPECT_EQ(FindTimeUnit("seconds")->ms, 1000.0);
  EXPECT_EQ(FindTimeUnit("x"), nullptr);
}

}  // namespace
}  // namespace dynosim::workload
