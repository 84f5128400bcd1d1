// SPDX-License-Identifier: Apache-2.0
// Agentic Mooncake files: every error of a line, of the whole graph and of the options.
#include "workload/traces/agentic_mooncake.h"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "workload/trace_test_case.h"

namespace dynosim::workload {
namespace {

constexpr std::string_view kHeader =
    R"({"schema":"dynamo.agentic_mooncake","version":2,"block_size":4,"hash_id_scope":"local","source":{"format":"f","digest":"d"}})"
    "\n";

// A row with one member changed (by its text), or removed when `to` is empty.
std::string Row(std::string_view from = "", std::string_view to = "") {
  std::string row =
      R"({"request_id":"a","play_id":"p","session_id":"s","model":"m","input_length":4,"output_length":2,"hash_ids":[1],"not_before_ms":0,"dependencies":[]})";
  if (!from.empty()) {
    row.replace(row.find(from), from.size(), to);
  }
  return row + "\n";
}

std::string Dependency(std::string_view members) {
  return fmt::format(R"("dependencies":[{{{}}}])", members);
}

class AgenticMooncakeTest : public TraceTestCase {
 protected:
  AgenticMooncakeTest() : TraceTestCase("agentic_mooncake") { spec_.trace->execution_model = "m"; }
  std::string RowError(std::string_view from, std::string_view to) {
    return ErrorOf(std::string(kHeader) + Row(from, to));
  }
};

TEST_F(AgenticMooncakeTest, RowsNeedEveryNameAndLengthsThatFitTheirIds) {
  EXPECT_EQ(RowError(R"("request_id":"a")", R"("request_id":" ")"),
            "t.jsonl:2: request_id is empty");
  EXPECT_EQ(RowError(R"("play_id":"p")", R"("play_id":"")"), "t.jsonl:2: play_id is empty");
  EXPECT_EQ(RowError(R"("model":"m")", R"("model":"")"), "t.jsonl:2: model is empty");
  EXPECT_EQ(RowError(R"("request_id":"a",)", ""), "t.jsonl:2: request_id is missing");
  EXPECT_EQ(RowError(R"("not_before_ms":0,)", ""), "t.jsonl:2: not_before_ms is missing");
  EXPECT_EQ(RowError(R"("hash_ids":[1],)", ""), "t.jsonl:2: hash_ids is missing");
  EXPECT_EQ(RowError(R"("hash_ids":[1])", R"("hash_ids":[])"), "t.jsonl:2: hash_ids is empty");
  EXPECT_EQ(RowError(R"("input_length":4,)", ""), "t.jsonl:2: input_length is missing");
  EXPECT_EQ(RowError(R"("output_length":2,)", ""), "t.jsonl:2: output_length is missing");
  EXPECT_EQ(RowError(R"("input_length":4)", R"("input_length":0)"),
            "t.jsonl:2: input_length must be from 1 to 281474976710656, got 0");
  EXPECT_EQ(RowError(R"("hash_ids":[1])", R"("hash_ids":[1,2])"),
            "t.jsonl:2: input_length 4 needs exactly 1 hash_ids of block_size 4, got 2");
  EXPECT_EQ(RowError(R"("hash_ids":[1])", R"("hash_ids":[1],"output_token_ids":[1])"),
            "t.jsonl:2: output_length 2 does not match the 1 output_token_ids");
  EXPECT_EQ(RowError(R"("not_before_ms":0)", R"("not_before_ms":-1)"),
            "t.jsonl:2: not_before_ms must be finite and at least 0, got -1");
  EXPECT_EQ(RowError(R"("not_before_ms":0)", R"("not_before_ms":0,"recorded_api_time_ms":-2)"),
            "t.jsonl:2: recorded_api_time_ms must be finite and at least 0, got -2");
  EXPECT_EQ(RowError(R"("input_length":4)", R"("input_length":4,"input_tokens":4)"),
            "t.jsonl:2: input_tokens is given twice (a field and its other name count as one)");
}

TEST_F(AgenticMooncakeTest, DependenciesAreCheckedMemberByMember) {
  const auto error = [this](std::string_view members) {
    return RowError(R"("dependencies":[])", Dependency(members));
  };
  EXPECT_EQ(error(R"("request_id":"b","trigger":"completion","delay_ms":1)"),
            "t.jsonl:2: dependencies[0] needs request_id, trigger, delay_ms and relation");
  EXPECT_EQ(error(R"("request_id":"b","trigger":"start","delay_ms":1,"relation":"join")"),
            "t.jsonl:2: dependencies[0].trigger must be dispatch or completion");
  EXPECT_EQ(error(R"("request_id":"","trigger":"completion","delay_ms":1,"relation":"join")"),
            "t.jsonl:2: a dependency has an empty request_id");
  EXPECT_EQ(
      error(R"("request_id":"b","trigger":"completion","delay_ms":-1,"relation":"join")"),
      "t.jsonl:2: request 'a' depends on 'b' with the invalid delay -1 ms; a dependency delay "
      "must be finite and at least 0");
  EXPECT_EQ(error(R"("request_id":"b","trigger":"dispatch","delay_ms":1,"relation":"join")"),
            "t.jsonl:2: a join dependency cannot have the trigger dispatch; only spawn can");
  EXPECT_EQ(error(R"("request_id":"b","trigger":"completion","delay_ms":1,"relation":"join")"),
            "t.jsonl:2: request 'a' depends on the unknown request_id 'b'");
  EXPECT_EQ(error(R"("request_id":"a","trigger":"completion","delay_ms":1,"relation":"join")"),
            "t.jsonl:2: request 'a' depends on itself");
}

TEST_F(AgenticMooncakeTest, AGraphHasNoCyclesNoEdgesBetweenPlaysAndConsistentOrdinals) {
  const auto node = [](std::string_view id, std::string_view play, std::string_view source,
                       std::string_view more = "") {
    std::string row = Row(R"("request_id":"a","play_id":"p")",
                          fmt::format(R"("request_id":"{}","play_id":"{}"{})", id, play, more));
    if (!source.empty()) {
      const std::string_view none = R"("dependencies":[])";
      row.replace(row.find(none), none.size(),
                  Dependency(fmt::format(R"("request_id":"{}","trigger":"completion","delay_ms":0,)"
                                         R"("relation":"sequence")",
                                         source)));
    }
    return row;
  };
  const std::string header(kHeader);
  EXPECT_EQ(ErrorOf(header + node("a", "p", "b") + node("b", "p", "a")),
            "t.jsonl: the dependencies of 2 requests form a cycle: 'a', 'b'");
  EXPECT_EQ(ErrorOf(header + node("a", "p", "") + node("b", "q", "a")),
            "t.jsonl:3: request 'b' of play 'q' depends on request 'a' of play 'p'");
  EXPECT_EQ(ErrorOf(header + node("a", "p", "") + node("a", "p", "")),
            "t.jsonl:3: request_id 'a' is given twice");
  EXPECT_EQ(
      ErrorOf(header + node("a", "p", "", R"(,"source_play_ordinal":0)") + node("b", "q", "")),
      "t.jsonl: source_play_ordinal must be given for every play, or for none");
  EXPECT_EQ(ErrorOf(header + node("a", "p", "", R"(,"source_play_ordinal":0)") +
                    node("b", "p", "", R"(,"source_play_ordinal":1)")),
            "t.jsonl: play 'p' has different source_play_ordinal values");
  EXPECT_EQ(
      ErrorOf(header + node("a", "p", "", R"(,"source_play_ordinal":0)") +
              node("b", "q", "", R"(,"source_play_ordinal":2)")),
      "t.jsonl: source_play_ordinal values must be unique and without gaps from 0; expected 1, "
      "found 2");
}

TEST_F(AgenticMooncakeTest, TheHeaderComesFirstAndSaysWhatTheFileIs) {
  const auto error = [this](std::string_view from, std::string_view to) {
    std::string header(kHeader);
    header.replace(header.find(from), from.size(), to);
    return ErrorOf(header + Row());
  };
  EXPECT_EQ(error("dynamo.agentic_mooncake", "x"),
            R"(t.jsonl:1: schema must be "dynamo.agentic_mooncake", got "x")");
  EXPECT_EQ(error(R"("version":2)", R"("version":3)"), "t.jsonl:1: version must be 2, got 3");
  EXPECT_EQ(error(R"("block_size":4)", R"("block_size":0)"),
            "t.jsonl:1: block_size must be greater than 0");
  EXPECT_EQ(error("local", "global"), R"(t.jsonl:1: hash_id_scope must be "local", got "global")");
  EXPECT_EQ(error(R"("digest":"d")", R"("digest":"")"),
            "t.jsonl:1: source needs a format and a digest that are not empty");
  EXPECT_EQ(ErrorOf(Row()), "t.jsonl:1: schema is missing");
  EXPECT_EQ(ErrorOf("\n"), "t.jsonl: the header of an agentic trace is missing");
  EXPECT_EQ(ErrorOf(kHeader), "t.jsonl: the trace contains no requests");
}

TEST_F(AgenticMooncakeTest, OptionsThatDoNotFitAreRefused) {
  const std::string text = std::string(kHeader) + Row();
  spec_.replay_concurrency = 2;
  EXPECT_EQ(ErrorOf(text).substr(0, 46), "--replay-concurrency: replay_concurrency is no");
  spec_.trace->agentic_lanes = 2;
  EXPECT_EQ(ErrorOf(text),
            "--agentic-lanes: agentic_lanes cannot be combined with replay_concurrency");
  spec_.replay_concurrency.reset();
  spec_.trace->agentic_lanes = 0;
  EXPECT_EQ(ErrorOf(text), "--agentic-lanes: agentic_lanes must be at least 1, got 0");
  spec_.trace->agentic_lanes = 1;
  spec_.trace->execution_model = "  ";
  EXPECT_EQ(ErrorOf(text), "--execution-model: execution_model must not be empty");
  spec_.trace->execution_model.reset();
  EXPECT_EQ(ErrorOf(text).substr(0, 27), "--execution-model: is neede");
  spec_.trace->format = "mooncake";
  EXPECT_EQ(ErrorOf(text),
            "--agentic-lanes: agentic_lanes needs the trace format 'agentic_mooncake', 'weka' or "
            "'dynamo'");
  spec_.trace->agentic_lanes.reset();
  spec_.trace->weka_nested_timestamp_basis = "auto";
  EXPECT_EQ(ErrorOf(text),
            "--weka-nested-timestamp-basis: weka_nested_timestamp_basis needs --trace-format weka");
}

TEST_F(AgenticMooncakeTest, PromptsShareBlocksWithEqualIdsAndGivenOutputs) {
  Load(
      std::string(kHeader) + Row() + Row(R"("request_id":"a")", R"("request_id":"b")") +
      Row(R"("request_id":"a","play_id":"p","session_id":"s","model":"m","input_length":4,"output_length":2)",
          R"("request_id":"c","play_id":"p","session_id":"s","model":"m","input_length":3,"output_length":1,"output_token_ids":[0])"));
  EXPECT_EQ(Prompt(0), (std::vector<std::uint32_t>{0, 0, 0, 0}));
  EXPECT_EQ(Prompt(1), Prompt(0));
  EXPECT_TRUE(source_->SharesGeneratedBlocks());
  std::vector<BlockExtent> whole;
  std::vector<BlockExtent> prompt;
  source_->Blocks(2, engine_block_size_, whole);
  source_->Blocks(0, engine_block_size_, prompt);
  EXPECT_EQ(whole.front(), prompt.front());  // three prompt tokens and the given one
}

}  // namespace
}  // namespace dynosim::workload
