// SPDX-License-Identifier: Apache-2.0
// Applied Compute sessions: turns, delays, shared prefixes and every error.
#include "workload/traces/applied_compute.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "workload/trace_test_case.h"

namespace dynosim::workload {
namespace {

constexpr std::string_view kSession =
    R"({"num_turns":2,"input_prompt_length":10,"assistant_response_length":[3,4],"tool_call_output_length":[1,0],"tool_call_latency":[0.5,0],"final_assistant_response_length":7})"
    "\n";

class AppliedComputeTest : public TraceTestCase {
 protected:
  AppliedComputeTest() : TraceTestCase("applied_compute_agentic") {
    spec_.replay_concurrency = 1;
    spec_.trace->block_size = 4;
  }
  std::string Changed(std::string_view from, std::string_view to) {
    std::string row(kSession);
    row.replace(row.find(from), from.size(), to);
    return row;
  }
};

TEST_F(AppliedComputeTest, ATurnIsEverythingBeforeItAndWaitsForItsTool) {
  Load(kSession);
  ASSERT_EQ(source_->RequestCount(), 3U);
  Release(0);
  EXPECT_EQ(requests_.back().prompt_tokens, 10U);
  EXPECT_EQ(requests_.back().output_tokens, 3U);
  Complete("0", 100);
  EXPECT_EQ(source_->NextReadyMs(), 600.0);
  Release(600);
  EXPECT_EQ(requests_.back().prompt_tokens, 14U);
  Complete("1", 700);
  Release(700);
  EXPECT_EQ(requests_.back().prompt_tokens, 18U);
  EXPECT_EQ(requests_.back().output_tokens, 7U);
  EXPECT_EQ(source_->SessionName(0), "applied_compute_agentic_session_1");
  // A later prompt begins with the earlier one, also within its last block.
  std::vector<std::uint32_t> longer = Prompt(1);
  longer.resize(10);
  EXPECT_EQ(Prompt(0), longer);
}

TEST_F(AppliedComputeTest, GroupsShareTheirFirstBlocks) {
  spec_.trace->shared_prefix_ratio = 0.5;
  spec_.trace->num_prefix_groups = 2;
  const std::string row(kSession);
  Load(row + row + row);
  const auto first_blocks = [this](std::uint32_t id) {
    std::vector<std::uint32_t> tokens = Prompt(id);
    tokens.resize(8);  // 3 blocks * 0.5, rounded away from zero
    return tokens;
  };
  EXPECT_EQ(first_blocks(0), first_blocks(6));
  EXPECT_NE(first_blocks(0), first_blocks(3));
  EXPECT_NE(Prompt(0), Prompt(6));
}

TEST_F(AppliedComputeTest, ErrorsNameLineAndMember) {
  EXPECT_EQ(ErrorOf(Changed(R"([3,4])", "[3]")),
            "t.jsonl:1: assistant_response_length has 1 elements, but num_turns is 2");
  EXPECT_EQ(ErrorOf(Changed(R"([1,0])", "[1,0,2]")),
            "t.jsonl:1: tool_call_output_length has 3 elements, but num_turns is 2");
  EXPECT_EQ(ErrorOf(Changed(R"([0.5,0])", "[]")),
            "t.jsonl:1: tool_call_latency has 0 elements, but num_turns is 2");
  EXPECT_EQ(ErrorOf(Changed(R"([0.5,0])", "[0.5,-1]")),
            "t.jsonl:1: tool_call_latency[1] must be finite and at least 0, got -1");
  EXPECT_EQ(ErrorOf(Changed(R"([0.5,0])", "[0.5,null]")),
            "t.jsonl:1: tool_call_latency[1] must be a number");
  EXPECT_EQ(ErrorOf(Changed(R"("input_prompt_length":10)", R"("input_prompt_length":0)")),
            "t.jsonl:1: input_prompt_length must be greater than 0");
  EXPECT_EQ(ErrorOf(Changed(R"("num_turns":2,)", "")), "t.jsonl:1: num_turns is missing");
  EXPECT_EQ(ErrorOf(""), "t.jsonl: the trace contains no requests");
  spec_.trace->shared_prefix_ratio = 1.5;
  EXPECT_EQ(
      ErrorOf(kSession),
      "--trace-shared-prefix-ratio: shared_prefix_ratio must be between 0.0 and 1.0, got 1.5");
  spec_.replay_concurrency.reset();
  EXPECT_NE(ErrorOf(kSession).find("needs --replay-concurrency"), std::string::npos);
}

}  // namespace
}  // namespace dynosim::workload
