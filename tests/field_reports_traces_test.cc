// SPDX-License-Identifier: Apache-2.0
// Trace files and times that users of serving systems stumbled over, kind by kind.
#include <fstream>
#include <ios>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <zlib.h>

#include "field_replay.h"
#include "workload/memory_file_for_test.h"

namespace dynosim::testing {
namespace {

using Strings = std::vector<std::string>;

constexpr const char* kArrival = "arrival_time_ms";
constexpr const char* kEnd = "terminal_time_ms";
constexpr const char* kInput = "input_length";
constexpr const char* kOutput = "output_length";

const std::string kRow = R"({"timestamp":0,"input_length":64,"output_length":2,"hash_ids":[1]})";

std::string Gzip(const std::string& text) {
  const workload::MemoryFile file;
  const gzFile packer = gzopen(file.Path().c_str(), "wb");
  gzwrite(packer, text.data(), static_cast<unsigned>(text.size()));
  gzclose(packer);
  std::ifstream packed(file.Path(), std::ios::binary);
  return {std::istreambuf_iterator<char>(packed), {}};
}

TEST(TraceReports, TimesStartAtTheEarliestRowAndKeepTheFileOrderOfEqualOnes) {
  ExpectResults({{.what = "unsorted",
                  .replay = {.rows = {"100/64/2[1]", "0/32/2[2]"}},
                  .expected = {{kArrival, "0 100"}, {kInput, "32 64"}}},
                 {.what = "negative",
                  .replay = {.rows = {"-5/64/2[1]", "0/64/2[2]"}},
                  .expected = {{kArrival, "0 5"}}},
                 {.what = "fractions",
                  .replay = {.rows = {"0.5/64/2[1]", "1.25/64/2[2]"}},
                  .expected = {{kArrival, "0 0.75"}}},
                 {.what = "late start",
                  .replay = {.rows = {"1000/64/2[1]", "1100/64/2[2]"}},
                  .expected = {{kArrival, "0 100"}}},
                 {.what = "all at once",
                  .replay = {.rows = {"0/3/2[1]", "0/1/2[2]", "0/2/2[3]"}},
                  .expected = {{kArrival, "0 0 0"}, {kInput, "3 1 2"}}},
                 {.what = "equal times around an earlier one",
                  .replay = {.rows = {"7/3/2[1]", "7/1/2[2]", "3/2/2[3]", "0.7e1/9/2[4]"}},
                  .expected = {{kArrival, "0 4 4 4"}, {kInput, "2 3 1 9"}}}});
}

TEST(TraceReports, TimesBeyondEveryClockEndAtTheEndOfTimeAndTheRunEnds) {
  const auto turn = [](std::string_view times) {
    return std::string(R"({"session_id":"a",)").append(times) +
           R"(,"input_length":64,"output_length":2,"hash_ids":[1]})";
  };
  ExpectResults({{.what = "delays that add up to infinity",
                  .replay = {.rows = {turn(R"("timestamp":0)"), turn(R"("delay":1e308)"),
                                      turn(R"("delay":1.7e308)")}},
                  .expected = {{kArrival, "0 1e+150 1e+150"}, {"completed_requests", "3"}}},
                 {.what = "a timestamp near the largest number",
                  .replay = {.rows = {"0/64/2[1]", "1.7e308/64/2[2]"}},
                  .expected = {{kArrival, "0 1e+150"}, {"completed_requests", "2"}}}});
}

TEST(TraceReports, StrangeTimesAreWarnedAboutOnce) {
  const std::pair<Strings, std::string> cases[] = {
      {{"0/64/2[1]", "100/64/2[1]"}, ""},
      {{"100/64/2[1]", "0/64/2[1]", "50/64/2[1]", "20/64/2[1]"},
       ":2: timestamp is earlier than the one before; requests are replayed in order of time (2 "
       "rows)"},
      {{"-5/64/2[1]", "-3/64/2[1]"},
       ":1: timestamp is negative; the earliest request is moved to time 0 (2 rows)"},
  };
  for (const auto& [rows, warning] : cases) {
    const FieldResult result = Replayed({.rows = rows});
    ASSERT_EQ(result.warnings.size(), warning.empty() ? 0U : 1U) << rows[0];
    EXPECT_TRUE(warning.empty() || result.warnings[0].ends_with(warning)) << result.warnings[0];
  }
}

TEST(TraceReports, EdgesOfFilesThatPeopleMakeAreFine) {
  const Strings files = {
      kRow + "\n" + kRow + "\n",
      kRow + "\r\n" + kRow + "\r\n",
      kRow + "\n" + kRow,
      "\n\n" + kRow + "\n \t\n\r\n" + kRow + "\n\n",
      "\xEF\xBB\xBF" + kRow + "\n" + kRow,
      R"({"größe":"雪","timestamp":0,"input_length":64,"output_length":2,"hash_ids":[1],"x":[{}]})"
      "\n" +
          kRow,
      Gzip(kRow + "\n" + kRow),
      Gzip(kRow + "\n") + Gzip(kRow + "\n"),
      Gzip("\xEF\xBB\xBF" + kRow + "\r\n" + kRow),
  };
  for (const std::string& file : files) {
    const FieldResult result = Replayed({.file = file});
    EXPECT_EQ(result.error, "") << file;
    EXPECT_EQ(result.Of(kEnd), "12 12") << file;
    EXPECT_TRUE(result.warnings.empty()) << file;
  }
}

// The public files of this format end their lines in CR LF, and the last one has no end.
TEST(TraceReports, AnAzureFileIsReplayedAsItIsPublished) {
  const std::string rows =
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
      "2023-11-16 18:17:03.9799600,4808,10\r\n"
      "2023-11-16 18:17:04.0319600,3180,8\r\n"
      "2023-11-16 18:17:04.0781490,110,27";
  for (const std::string& file : {rows, "\xEF\xBB\xBF" + rows + "\r\n", Gzip(rows)}) {
    const FieldResult result = Replayed({.trace_format = "azure", .file = file});
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(result.Of(kArrival), "0 52 98.189");
    EXPECT_EQ(result.Of(kInput), "4808 3180 110");
    EXPECT_EQ(result.Of(kOutput), "10 8 27");
    EXPECT_EQ(result.Of("reused_input_tokens"), "0 0 0");  // lengths alone share nothing
    EXPECT_EQ(result.Of(kEnd), "28 76 160.189");
    EXPECT_TRUE(result.warnings.empty());
  }
}

TEST(TraceReports, WrongFilesAreErrorsThatNameTheLine) {
  const std::string good = kRow + "\n";
  const std::pair<std::string, std::string> cases[] = {
      {good + "\"\xFF\"\n", ":2: the line is not valid UTF-8"},
      {good + R"({"x":")" + "\xC3\"," + kRow.substr(1), ":2: the line is not valid UTF-8"},
      {good + "\n" + kRow.substr(0, 40), ":3: the line is not valid JSON"},
      {"[" + kRow + "]", ":1: the line is a JSON array; one JSON object per line is needed"},
      {"[\n" + kRow + "\n]\n", ":1: the line is a JSON array; one JSON object per line is needed"},
      {good + "# comment\n", ":2: the line is not a JSON object"},
      {good + R"({"timestamp":0,)" + kRow.substr(1),
       ":2: timestamp is given twice (a field and its other name count as one)"},
      {good + "\xEF\xBB\xBF" + kRow, ":2: the line is not a JSON object"},
      {"", ": the trace contains no requests"},
      {"\n \r\n\t", ": the trace contains no requests"},
      {"\xEF\xBB\xBF", ": the trace contains no requests"},
      {Gzip(""), ": the trace contains no requests"},
      {Gzip(good).substr(0, 30), ": gzip data is cut off"},
  };
  for (const auto& [file, message] : cases) {
    const FieldResult result = Replayed({.file = file});
    EXPECT_TRUE(result.error.ends_with(message)) << file << "\n" << result.error;
  }
}

TEST(TraceReports, HugePromptsCostWhatTheirBlocksCost) {
  EXPECT_TRUE(Replayed({.rows = {"0/1099511627776/2[1]"}})
                  .error.ends_with(":1: input_length 1099511627776 exceeds the capacity 64 of its "
                                   "hash_ids (1 ids of 64 tokens)"));
  ExpectResults({{.what = "125 chunks of 8192 tokens",
                  .replay = {.rows = {"0/1024000/2[0..1999]"},
                             .engine = R"("num_gpu_blocks":20000)",
                             .trace_block = "512"},
                  .expected = {{"ttft_ms", "1250"}, {kEnd, "1252"}}},
                 {.what = "8192 tokens and 1 more",
                  .replay = {.rows = {"0/8193/2[0..16]"}, .trace_block = "512"},
                  .expected = {{"ttft_ms", "20"}, {kEnd, "22"}}}},
                {"vllm", "trtllm"});
}

TEST(TraceReports, HugeOutputsAreClampedBeforeAnythingIsAllocated) {
  const std::string engine = R"("max_model_len":1000)";
  ExpectResults(
      {{.what = "two millions",
        .replay = {.rows = {"0/64/2000000[1]"}, .engine = engine},
        .expected = {{kOutput, "936"}, {kEnd, "1880"}}},
       {.what = "2^31",
        .replay = {.rows = {"0/64/2147483648[1]"}, .engine = engine},
        .expected = {{kOutput, "936"}, {kEnd, "1880"}}},
       {.what = "2^48, the most that is read",
        .replay = {.rows = {"0/64/281474976710656[1]"}, .engine = R"("max_model_len":128)"},
        .expected = {{"requested_output_length", "281474976710656"},
                     {kOutput, "64"},
                     {kEnd, "136"}}}},
      {"vllm", "trtllm", "sglang"});
  // Without a context limit the pool decides: TensorRT-LLM cuts the output, vLLM refuses.
  const FieldReplay pool = {.rows = {"0/64/2147483648[1]", "1/64/2[2]"},
                            .engine = R"("num_gpu_blocks":8)"};
  ExpectResults({{.what = "the output that fits",
                  .replay = pool,
                  .expected = {{kOutput, "448 2"}, {kEnd, "904 916"}}}},
                {"trtllm"});
  ExpectResults({{.what = "no output at all",
                  .replay = pool,
                  .expected = {{"terminal_status", "rejected completed"}, {kEnd, "0 13"}}}},
                {"vllm"});
  EXPECT_TRUE(Replayed({.rows = {"0/64/281474976710657[1]"}})
                  .error.ends_with(":1: output_length must be at most 281474976710656, got "
                                   "281474976710657"));
}

}  // namespace
}  // namespace dynosim::testing
