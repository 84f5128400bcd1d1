// SPDX-License-Identifier: Apache-2.0
// Requests that can never proceed, kind by kind: they are rejected with a reason, the others are
// served, and the run ends as usual.
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cli/program.h"
#include "field_replay.h"
#include "workload/memory_file_for_test.h"

namespace dynosim::testing {
namespace {

using Strings = std::vector<std::string>;

const Strings kPaged = {"vllm", "trtllm"};
const Strings kAll = {"vllm", "trtllm", "sglang"};

constexpr const char* kStatus = "terminal_status";
constexpr const char* kReason = "rejection_reason";
constexpr const char* kTtft = "ttft_ms";
constexpr const char* kEnd = "terminal_time_ms";

// A cache of 512 tokens.
constexpr const char* kSmall = R"("num_gpu_blocks":8)";

TEST(StuckReports, ARequestAboveTheCacheIsRejectedAndTheOthersAreServed) {
  ExpectResults({{.what = "a prompt of 20 blocks ends with the pass that finds it",
                  .replay = {.rows = {"0/1280/2[0..19]", "0/64/2[99]"}, .engine = kSmall},
                  .expected = {{kStatus, "rejected completed"},
                               {kEnd, "10 12"},
                               {"num_requests", "2"},
                               {"completed_requests", "1"},
                               {"rejected_requests", "1"},
                               {"total_input_tokens", "64"},
                               {"total_output_tokens", "2"},
                               {"committed_prefill_tokens", "64"}}},
                 {.what = "alone, that pass takes no time",
                  .replay = {.rows = {"0/1280/2[0..19]", "5/64/2[99]"}, .engine = kSmall},
                  .expected = {{kStatus, "rejected completed"}, {kEnd, "0 17"}}}},
                kAll);
}

TEST(StuckReports, VllmServesWhatFitsWithTheLastTokenOutsideTheCache) {
  ExpectResults(
      {{.what = "a prompt of the whole cache and a second token",
        .replay = {.rows = {"0/512/2[0..7]", "1/64/2[99]"}, .engine = kSmall},
        .expected = {{kStatus, "rejected completed"},
                     {kEnd, "0 13"},
                     {kReason, "prompt and output together need 9 KV blocks; the rank has 8 -"}}},
       {.what = "a prompt of the whole cache and one token",
        .replay = {.rows = {"0/512/1[0..7]", "1/64/2[99]"}, .engine = kSmall},
        .expected = {{kStatus, "completed completed"}, {kEnd, "10 22"}}},
       {.what = "an output far beyond the cache",
        .replay = {.rows = {"0/448/200[0..6]", "1/64/2[99]"}, .engine = kSmall},
        .expected = {{kStatus, "rejected completed"},
                     {kEnd, "0 13"},
                     {kReason, "prompt and output together need 11 KV blocks; the rank has 8 -"}}},
       {.what = "an output that just fits",
        .replay = {.rows = {"0/448/65[0..6]", "1/64/2[99]"}, .engine = kSmall},
        .expected = {{kStatus, "completed completed"}, {kEnd, "138 150"}}},
       {.what = "one token more",
        .replay = {.rows = {"0/448/66[0..6]", "1/64/2[99]"}, .engine = kSmall},
        .expected = {{kStatus, "rejected completed"}, {kEnd, "0 13"}}}},
      {"vllm"});
}

TEST(StuckReports, ABurstOfSpeculationMustFitAsAWhole) {
  const std::string engine =
      R"("block_size":4,"num_gpu_blocks":4,"aic_nextn":3,"aic_nextn_accept_rates":"1,1,1")";
  ExpectResults(
      {{.what = "13 and 4 tokens in a cache of 16",
        .replay = {.rows = {"0/13/4[1..4]", "1/4/1[9]"}, .engine = engine, .trace_block = "4"},
        .expected = {{kStatus, "rejected completed"}, {kEnd, "0 13"}}},
       {.what = "12 and 4 tokens",
        .replay = {.rows = {"0/12/4[1..3]", "1/4/1[9]"}, .engine = engine, .trace_block = "4"},
        .expected = {{kStatus, "completed completed"}, {kEnd, "12 24"}}}},
      {"vllm"});
}

TEST(StuckReports, TensorRtLlmCutsTheOutputAndRejectsAPromptWithoutRoomForOne) {
  ExpectResults({{.what = "an output far beyond the cache",
                  .replay = {.rows = {"0/448/200[0..6]", "1/64/2[99]"}, .engine = kSmall},
                  .expected = {{kStatus, "completed completed"},
                               {"output_length", "64 2"},
                               {kEnd, "136 148"}}},
                 {.what = "room for one token",
                  .replay = {.rows = {"0/511/200[0..7]", "1/64/2[99]"}, .engine = kSmall},
                  .expected = {{"output_length", "1 2"}, {kEnd, "10 22"}}},
                 {.what = "a prompt of the whole cache",
                  .replay = {.rows = {"0/512/1[0..7]", "1/64/2[99]"}, .engine = kSmall},
                  .expected = {{kStatus, "rejected completed"}, {kEnd, "0 13"}}}},
                {"trtllm"});
}

TEST(StuckReports, SglangServesWhatIsSmallerThanItsPool) {
  // A request needs strictly less than the pool. Up to the pool it might still run behind a cached
  // prefix, so that the rank gets stuck before it is rejected.
  ExpectResults({{.what = "a prompt above the pool",
                  .replay = {.rows = {"0/513/1[0..8]", "1/64/2[99]"}, .engine = kSmall},
                  .expected = {{kStatus, "rejected completed"}, {kEnd, "0 13"}}},
                 {.what = "a prompt of the whole pool",
                  .replay = {.rows = {"0/512/1[0..7]", "1/64/2[99]"}, .engine = kSmall},
                  .expected = {{kStatus, "rejected completed"}, {kEnd, "0 13"}}},
                 {.what = "prompt and output above the pool",
                  .replay = {.rows = {"0/448/200[0..6]", "1/64/2[99]"}, .engine = kSmall},
                  .expected = {{kStatus, "rejected completed"}, {kEnd, "0 13"}}},
                 {.what = "prompt and output of the whole pool",
                  .replay = {.rows = {"0/448/64[0..6]", "1/64/2[99]"}, .engine = kSmall},
                  .expected = {{kStatus, "rejected completed"}, {kEnd, "0 13"}}},
                 {.what = "one token less",
                  .replay = {.rows = {"0/448/63[0..6]", "1/64/2[99]"}, .engine = kSmall},
                  .expected = {{kStatus, "completed completed"}, {kEnd, "134 146"}}}},
                {"sglang"});
}

TEST(StuckReports, APromptAboveTheTokenBudgetIsRejectedWhereItCannotBeChunked) {
  const std::string chunks = R"("max_num_batched_tokens":128)";
  const std::string whole = chunks + R"(,"enable_chunked_prefill":false)";
  ExpectResults(
      {{.what = "256 tokens, 128 in a pass",
        .replay = {.rows = {"0/256/2[1 2 3 4]", "1/64/2[7]"}, .engine = whole},
        .expected = {{kStatus, "rejected completed"},
                     {kReason,
                      "the prompt has 256 tokens; a pass may compute 128 and chunked prefill is "
                      "off -"},
                     {kTtft, "null 10"},
                     {kEnd, "0 13"}}},
       {.what = "in chunks",
        .replay = {.rows = {"0/256/2[1 2 3 4]", "1/64/2[7]"}, .engine = chunks},
        .expected = {{kStatus, "completed completed"}, {kTtft, "20 31"}, {kEnd, "32 34"}}},
       {.what = "only what is not cached must fit: 128, then 192",
        .replay = {.rows = {"0/128/2[1 2]", "100/256/2[1 2 3 4]", "200/320/2[1 2 5 6 7]"},
                   .engine = whole},
        .expected = {{kStatus, "completed completed rejected"},
                     {"reused_input_tokens", "0 128 0"},
                     {kTtft, "10 10 null"},
                     {kEnd, "12 112 200"}}}},
      kPaged);
}

TEST(StuckReports, TheContextLimitRejectsLongPromptsAndEndsOutputsEarly) {
  const std::string engine = R"("max_model_len":128)";
  ExpectResults(
      {{.what = "a prompt above the limit",
        .replay = {.rows = {"0/256/2[1 2 3 4]", "1/64/2[7]"}, .engine = engine},
        .expected = {{kStatus, "rejected completed"},
                     {kReason, "the prompt has 256 tokens; max_model_len allows fewer than 128 -"},
                     {kEnd, "0 13"}}},
       {.what = "an output above the limit",
        .replay = {.rows = {"0/64/200[1]"}, .engine = engine},
        .expected = {{kStatus, "completed"},
                     {"output_length", "64"},
                     {"requested_output_length", "200"},
                     {kEnd, "136"}}},
       {.what = "a prompt of the limit, and one token less",
        .replay = {.rows = {"0/128/1[1 2]", "1/127/9[1 2]"}, .engine = engine},
        .expected = {{kStatus, "rejected completed"}, {"output_length", "0 1"}, {kEnd, "0 11"}}}},
      kAll);
}

// Oldest-first preemption with bursts: each request loses its prefill before it gives a token,
// again and again, while time goes on. The reference does not come out of this.
TEST(StuckReports, RequestsThatPreemptEachOtherForEverAreServedOneAtATime) {
  const std::string engine =
      R"("block_size":3,"num_gpu_blocks":6,"max_num_seqs":4,"max_num_batched_tokens":5,)"
      R"("preemption_mode":"fifo","aic_nextn":5,"aic_nextn_accept_rates":"0.5,0.5,0.5",)"
      R"("aic_mtp_seed":740,"timing_model":{"type":"fixed","prefill_ms":5.5,"decode_ms":1.3})";
  ExpectResults({{.what = "eight requests, each of which fits alone",
                  .replay = {.rows = {"0/2/5[6]", "0/13/2[1 2 3]", "0/1/2[10]", "0/9/1[4 5]",
                                      "0/2/11[12]", "0/7/0[7 8]", "0/5/2[9]", "0/1/1[11]"},
                             .engine = engine,
                             .trace_block = "5",
                             .concurrency = "8"},
                  .expected = {{"completed_requests", "8"}, {"total_output_tokens", "24"}}}},
                {"vllm"});
}

TEST(StuckReports, TheProgramEndsWellAndShowsTheFirstReason) {
  workload::MemoryFile file;
  file.Write(R"({"timestamp":0,"input_length":640,"output_length":3,"hash_ids":[1,2]})");
  const std::string trace = file.Path();
  const std::string engine = R"({"num_gpu_blocks":4})";
  const char* const arguments[] = {"dynosim",       "replay",         trace.c_str(),
                                   "--report-json", "/dev/null",      "--extra-engine-args",
                                   engine.c_str(),  "--num-workers=2"};
  ::testing::internal::CaptureStdout();
  const int code = cli::RunProgram(static_cast<int>(std::size(arguments)), arguments);
  const std::string table = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(code, 0);
  EXPECT_NE(table.find("Rejected Requests (requests)"), std::string::npos) << table;
  EXPECT_NE(table.find("First Rejection Reason: the prompt needs 10 KV blocks; the rank has 4"),
            std::string::npos)
      << table;
}

}  // namespace
}  // namespace dynosim::testing
