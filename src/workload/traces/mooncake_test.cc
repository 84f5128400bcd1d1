// SPDX-License-Identifier: Apache-2.0
// Mooncake traces through the loader: rows to requests, times, sessions, warnings, and every error.
#include "workload/traces/mooncake.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "base/random.h"
#include "workload/load.h"
#include "workload/memory_file_for_test.h"
#include "workload/request.h"
#include "workload/source.h"
#include "workload/spec.h"

namespace dynosim::workload {
namespace {

using Extents = std::vector<BlockExtent>;

class MooncakeTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(testing::TempDir()) /
                 testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(directory_);
    path_ = (directory_ / "t.jsonl").string();
    spec_.trace = TraceSpec{.files = {path_}, .block_size = 64};
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  Result<LoadedWorkload> TryLoad(std::string_view text, std::uint64_t engine_block_size = 64) {
    std::ofstream(path_, std::ios::binary) << text;
    block_size_ = engine_block_size;
    return LoadWorkload(spec_, engine_block_size);
  }
  RequestSource& Load(std::string_view text, std::uint64_t engine_block_size = 64) {
    auto loaded = TryLoad(text, engine_block_size);
    if (!loaded) {
      ADD_FAILURE() << loaded.error().Text();
      std::abort();
    }
    warnings_ = loaded->warnings;
    source_ = std::move(loaded->source);
    return *source_;
  }
  // The error without the folder of the file.
  std::string ErrorOf(std::string_view text) {
    const auto loaded = TryLoad(text);
    if (loaded) {
      return "no error";
    }
    const std::string message = loaded.error().Text();
    const std::string folder = directory_.string() + "/";
    const std::size_t at = message.find(folder);
    return at == std::string::npos ? message
                                   : message.substr(0, at) + message.substr(at + folder.size());
  }
  // Releases everything that is ready by `now_ms`.
  std::vector<Request> ReleaseAll(double now_ms) {
    std::vector<Request> out;
    Request request;
    while (source_->Release(now_ms, request)) {
      out.push_back(request);
    }
    return out;
  }
  std::vector<double> Arrivals(std::string_view text) {
    Load(text);
    std::vector<double> out;
    for (const Request& request : ReleaseAll(1e300)) {
      out.push_back(request.arrival_ms);
    }
    return out;
  }
  Extents BlocksOf(std::uint32_t id) const {
    Extents out;
    source_->Blocks(id, block_size_, out);
    return out;
  }

  std::filesystem::path directory_;
  std::string path_;
  std::uint64_t block_size_ = 64;
  WorkloadSpec spec_;
  std::vector<std::string> warnings_;
  std::unique_ptr<RequestSource> source_;
};

constexpr std::string_view kRow =
    R"({"timestamp":0,"input_length":64,"output_length":2,"hash_ids":[1]})";
std::string Row(std::string_view timestamp, std::string_view more = "") {
  return R"({"timestamp":)" + std::string(timestamp) +
         R"(,"input_length":64,"output_length":2,"hash_ids":[1])" + std::string(more) + "}\n";
}

TEST_F(MooncakeTest, RowsBecomeAListOfRequests) {
  Load(R"({"timestamp": 10, "input_length": 100, "output_length": 7, "hash_ids": [5, 9]}
{"timestamp": 25.5, "input_length": 64, "output_length": 0, "hash_ids": [5], "priority": -3, "strict_priority": 4, "policy_class": "gold"}
)");
  EXPECT_EQ(source_->RequestCount(), 2U);
  EXPECT_EQ(source_->NextReadyMs(), 0.0);
  const auto requests = ReleaseAll(1e9);
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[0].id, 0U);
  EXPECT_EQ(requests[0].arrival_ms, 0.0);
  EXPECT_EQ(requests[0].prompt_tokens, 100U);
  EXPECT_EQ(requests[0].output_tokens, 7U);
  EXPECT_EQ(requests[0].session, kNone);
  EXPECT_EQ(requests[0].turn, kNone);
  EXPECT_EQ(requests[0].policy_class, kNone);
  EXPECT_EQ(requests[1].arrival_ms, 15.5);
  EXPECT_EQ(requests[1].output_tokens, 0U);
  EXPECT_EQ(requests[1].priority, -3);
  EXPECT_EQ(requests[1].strict_priority, 4U);
  EXPECT_EQ(source_->PolicyClassName(requests[1].policy_class), "gold");
  EXPECT_TRUE(source_->Exhausted());
  EXPECT_EQ(BlocksOf(0), (Extents{{0, 0, 1}, {2, 0, kEndless}}));
  EXPECT_EQ(BlocksOf(1), (Extents{{0, 0, 1}, {3, 0, kEndless}}));
  EXPECT_FALSE(source_->SharesGeneratedBlocks());
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(MooncakeTest, AliasesNullsDefaultsAndEscapedKeys) {
  Load(
      R"({"created_time":5,"input_tokens":null,"output_tokens":3,"hash_ids":[1,2],"request_id":"r","session_id":null,"delay":null,"output_token_ids":null,"x":{"y":[1,"\ud800",null,1e999]}}
{"time\u0073tamp":6,"output_length":3,"hash_ids":[1]})");
  const auto requests = ReleaseAll(1.0);
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[0].prompt_tokens, 128U);
  EXPECT_EQ(requests[1].prompt_tokens, 64U);
  EXPECT_EQ(requests[1].arrival_ms, 1.0);
}

TEST_F(MooncakeTest, TimesStartAtTheEarliestAndKeepTheOrderOfEqualOnes) {
  using Times = std::vector<double>;
  EXPECT_EQ(Arrivals(Row("100") + Row("0")), (Times{0, 100}));
  EXPECT_EQ(Arrivals(Row("-5") + Row("0")), (Times{0, 5}));
  EXPECT_EQ(Arrivals(Row("0.5") + Row("1.25")), (Times{0, 0.75}));
  EXPECT_EQ(Arrivals(Row("1000") + Row("1100")), (Times{0, 100}));
  Load(Row("7") + Row("7") + Row("3") + Row("7"));
  std::vector<std::uint32_t> ids;
  for (const Request& request : ReleaseAll(1e9)) {
    ids.push_back(request.id);
  }
  EXPECT_EQ(ids, (std::vector<std::uint32_t>{2, 0, 1, 3}));
}

TEST_F(MooncakeTest, SpeedupDividesTheDifferences) {
  spec_.arrival_speedup_ratio = 3.0;
  EXPECT_EQ(Arrivals(Row("10") + Row("11.5")), (std::vector<double>{0.0, 1.5 / 3.0}));
}

TEST_F(MooncakeTest, LongDecimalsAreReadByTheTraceRule) {
  EXPECT_EQ(Arrivals(Row("0") + Row("123.45678901234567")),
            (std::vector<double>{0.0, 12345678901234567.0 / 1e14}));
}

TEST_F(MooncakeTest, FileEdgesAreAccepted) {
  for (const std::string& text :
       {std::string(kRow), std::string(kRow) + "\r\n", "\n \t\r\n" + std::string(kRow) + "\n\n",
        "\xEF\xBB\xBF" + std::string(kRow), "  " + std::string(kRow) + "  \n",
        R"({"größe":"ü",)" + std::string(kRow.substr(1))}) {
    EXPECT_EQ(Arrivals(text).size(), 1U) << text;
  }
}

TEST_F(MooncakeTest, PackedTraceIsRecognised) {
  const std::string text = Row("0") + Row("1");
  const gzFile file = gzopen(path_.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  const auto loaded = LoadWorkload(spec_, 64);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->source->RequestCount(), 2U);
}

TEST_F(MooncakeTest, SessionsFollowTheirDelays) {
  Load(Row("0", R"(,"session_id":"a")") + Row("3", R"(,"session_id":"b")") +
       Row("50", R"(,"session_id":"a","delay":1)") + Row("60", R"(,"session_id":"a")") +
       Row("null", R"(,"session_id":"b")"));
  auto requests = ReleaseAll(3.0);
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(source_->SessionName(requests[1].session), "b");
  EXPECT_EQ(requests[1].turn, 0U);
  source_->OnTerminal(0, 12.0, TerminalStatus::kCompleted, 2);
  EXPECT_EQ(source_->NextReadyMs(), 13.0);
  requests = ReleaseAll(13.0);
  EXPECT_EQ(requests[0].id, 2U);
  EXPECT_EQ(requests[0].turn, 1U);
  // The delay comes from the last timestamp of the session, 60 - 50.
  source_->OnTerminal(2, 25.0, TerminalStatus::kRejected, 0);
  EXPECT_EQ(source_->NextReadyMs(), 35.0);
  EXPECT_EQ(ReleaseAll(35.0)[0].id, 3U);
  // No timestamp and no delay: no pause.
  source_->OnTerminal(1, 40.0, TerminalStatus::kCompleted, 2);
  EXPECT_EQ(ReleaseAll(40.0)[0].arrival_ms, 40.0);
  EXPECT_TRUE(source_->Exhausted());
}

TEST_F(MooncakeTest, FailedTurnEndsTheSession) {
  Load(Row("0", R"(,"session_id":"a")") + Row("1", R"(,"session_id":"a")"));
  ReleaseAll(0.0);
  EXPECT_FALSE(source_->Exhausted());
  source_->OnTerminal(0, 5.0, TerminalStatus::kFailed, 0);
  EXPECT_TRUE(source_->Exhausted());
  EXPECT_EQ(source_->NextReadyMs(), std::nullopt);
}

TEST_F(MooncakeTest, ConcurrencyIgnoresTimesAndCapsSessions) {
  spec_.replay_concurrency = 1;
  spec_.arrival_speedup_ratio = 2.0;
  Load(Row("900", R"(,"session_id":"a")") + Row("null", R"(,"session_id":"")") +
       Row("5", R"(,"session_id":"a","delay_ms":10)"));
  EXPECT_EQ(ReleaseAll(0.0).size(), 1U);
  source_->OnTerminal(0, 12.0, TerminalStatus::kCompleted, 2);
  EXPECT_EQ(source_->NextReadyMs(), 22.0);
  EXPECT_EQ(ReleaseAll(22.0)[0].id, 2U);
  source_->OnTerminal(2, 34.0, TerminalStatus::kCompleted, 2);
  const auto requests = ReleaseAll(34.0);
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].arrival_ms, 34.0);
  EXPECT_EQ(source_->SessionName(requests[0].session), "");
}

TEST_F(MooncakeTest, RowsWithoutAnIdAreSessionsNamedByTheirLine) {
  spec_.replay_concurrency = 9;
  Load("\n" + Row("0") + Row("0", R"(,"session_id":"request_4")") + Row("0") +
       Row("0", R"(,"session_id":"request_2")") + Row("0", R"(,"session_id":"request_04")"));
  const auto requests = ReleaseAll(0.0);
  // Line 4 belongs to the session that line 3 opened under its name, line 5 to line 2's.
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(source_->SessionName(requests[0].session), "request_2");
  EXPECT_EQ(source_->SessionName(requests[1].session), "request_4");
  EXPECT_EQ(source_->SessionName(requests[2].session), "request_04");
  source_->OnTerminal(0, 1.0, TerminalStatus::kCompleted, 2);
  source_->OnTerminal(1, 2.0, TerminalStatus::kCompleted, 2);
  EXPECT_EQ(ReleaseAll(1.0)[0].id, 3U);
  EXPECT_EQ(ReleaseAll(2.0)[0].id, 2U);
}

TEST_F(MooncakeTest, ExplicitOutputsAreNamedWithThePrompt) {
  // Ids are numbered 0, 1: the output of the first row makes the second row's second block.
  spec_.trace->block_size = 2;
  Load(R"({"timestamp":0,"output_length":3,"hash_ids":[70],"output_token_ids":[1,1,8]}
{"timestamp":0,"output_length":1,"hash_ids":[70,71]})",
       2);
  EXPECT_TRUE(source_->SharesGeneratedBlocks());
  ReleaseAll(0.0);
  EXPECT_EQ(BlocksOf(0), (Extents{{0, 0, 1}, {1, 0, 1}}));
  EXPECT_EQ(BlocksOf(1), (Extents{{0, 0, 1}, {1, 0, 1}, {4, 0, kEndless}}));
  EXPECT_EQ(source_->OutputToken(0, 2), 8U);
  std::vector<std::uint32_t> tokens;
  source_->PromptTokens(1, tokens);
  EXPECT_EQ(tokens, (std::vector<std::uint32_t>{0, 0, 1, 1}));
}

TEST_F(MooncakeTest, DeltaPromptsContainWhatWasGenerated) {
  spec_.trace->format = "mooncake_delta";
  Load(R"({"timestamp":0,"input_length":128,"output_length":64,"hash_ids":[1,2],"session_id":"s"}
{"timestamp":1,"input_length":64,"output_length":4,"hash_ids":[3],"session_id":"s"}
{"timestamp":2,"input_length":64,"output_length":4,"hash_ids":[4],"session_id":"s"})");
  EXPECT_EQ(ReleaseAll(0.0)[0].prompt_tokens, 128U);
  EXPECT_EQ(BlocksOf(0), (Extents{{3, 0, 1}, {4, 0, 1}, {0, 0, 1}}));
  source_->OnTerminal(0, 10.0, TerminalStatus::kCompleted, 64);
  EXPECT_EQ(ReleaseAll(11.0)[0].prompt_tokens, 256U);
  EXPECT_EQ(BlocksOf(1), (Extents{{3, 0, 1}, {4, 0, 1}, {0, 0, 1}, {5, 0, 1}}));
  source_->OnTerminal(1, 20.0, TerminalStatus::kCompleted, 4);
  EXPECT_EQ(ReleaseAll(21.0)[0].prompt_tokens, 324U);
  // The third turn's block of 64 ends among its own tokens.
  EXPECT_EQ(BlocksOf(2),
            (Extents{{3, 0, 1}, {4, 0, 1}, {0, 0, 1}, {5, 0, 1}, {6, 0, 1}, {2, 0, kEndless}}));
  EXPECT_TRUE(source_->SharesGeneratedBlocks());
}

TEST_F(MooncakeTest, DeltaKeepsOnlyWhatACutOrRejectedTurnDelivered) {
  spec_.trace->format = "mooncake-delta";
  const std::string turns = Row("0", R"(,"session_id":"s")") + Row("0", R"(,"session_id":"s")") +
                            Row("0", R"(,"session_id":"s")");
  Load(turns);
  ReleaseAll(0.0);
  source_->OnTerminal(0, 1.0, TerminalStatus::kCompleted, 1);
  EXPECT_EQ(ReleaseAll(1.0)[0].prompt_tokens, 129U);
  source_->OnTerminal(1, 2.0, TerminalStatus::kRejected, 1);
  EXPECT_EQ(ReleaseAll(2.0)[0].prompt_tokens, 193U);
}

TEST_F(MooncakeTest, WarningsCountAndNameTheFirstLine) {
  Load(Row("5") + Row("3") + Row("4") + Row("2"));
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_TRUE(
      warnings_[0].ends_with("t.jsonl:2: timestamp is earlier than the one before; requests "
                             "are replayed in order of time (2 rows)"));
  Load(Row("-5") + Row("3"));
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_TRUE(warnings_[0].ends_with(
      "t.jsonl:1: timestamp is negative; the earliest request is moved to time 0 (1 row)"));
  Load(Row("200000000") + Row("0") + Row("1"));
  ASSERT_EQ(warnings_.size(), 2U);
  EXPECT_TRUE(
      warnings_[1].ends_with("t.jsonl:1: more than a day passes before this row; timestamps "
                             "and delays are in milliseconds (1 row)"));
  Load(Row("0", R"(,"session_id":"a")") + Row("86400001", R"(,"session_id":"a")"));
  EXPECT_EQ(warnings_.size(), 1U);
  Load(R"({"timestamp":0,"input_length":64,"output_length":2,"hash_ids":[1,2,3]})");
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_TRUE(
      warnings_[0].ends_with("t.jsonl:1: hash_ids has more ids than input_length needs; the "
                             "rest is ignored (1 row)"));
  EXPECT_EQ(BlocksOf(0), (Extents{{0, 0, 1}, {1, 0, kEndless}}));
  spec_.replay_concurrency = 1;
  Load(Row("5") + Row("3"));
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(MooncakeTest, RowErrorsNameFileLineAndField) {
  const std::string good = std::string(kRow) + "\n";
  EXPECT_EQ(ErrorOf(good + R"({"timestamp":0,"input_length":64,"output_length":2})"),
            "t.jsonl:2: hash_ids is missing");
  EXPECT_EQ(ErrorOf("\n" + good + R"({"timestamp":0,"output_length":2,"hash_ids":null})"),
            "t.jsonl:3: hash_ids is missing");
  EXPECT_EQ(
      ErrorOf(R"({"timestamp":0,"input_length":1099511627776,"output_length":2,"hash_ids":[1]})"),
      "t.jsonl:1: input_length 1099511627776 exceeds the capacity 64 of its hash_ids (1 ids of "
      "64 tokens)");
  EXPECT_EQ(ErrorOf(R"({"timestamp":0,"input_length":64,"hash_ids":[1]})"),
            "t.jsonl:1: output_length is missing");
  EXPECT_EQ(ErrorOf(Row("0", R"(,"output_token_ids":[1])")),
            "t.jsonl:1: output_length 2 does not match the 1 output_token_ids");
  EXPECT_EQ(ErrorOf(Row("0", R"(,"session_id":"a","delay":3)")),
            "t.jsonl:1: delay 3 on the first turn of session a; only later turns wait");
  EXPECT_EQ(ErrorOf(Row("0", R"(,"delay":-1)")),
            "t.jsonl:1: delay -1 on the first turn of session request_1; only later turns wait");
  EXPECT_EQ(ErrorOf(Row("null", R"(,"session_id":"a")") + Row("3", R"(,"session_id":"a")")),
            "t.jsonl:2: session a has no earlier timestamp, so the delay of this turn is unknown");
  EXPECT_EQ(ErrorOf(Row("8", R"(,"session_id":"a")") + Row("3", R"(,"session_id":"a")")),
            "t.jsonl:2: delay -5 of session a is invalid; it must be finite and at least 0, and "
            "timestamps of a session must not go back");
}

TEST_F(MooncakeTest, WholeTraceErrorsNameTheSession) {
  EXPECT_EQ(ErrorOf(""), "t.jsonl: the trace contains no requests");
  EXPECT_EQ(ErrorOf(" \n\r\n"), "t.jsonl: the trace contains no requests");
  EXPECT_TRUE(ErrorOf(Row("0") + Row("null"))
                  .starts_with("t.jsonl:2: session request_2 has no first_arrival_timestamp_ms"));
  EXPECT_EQ(ErrorOf(R"({"timestamp":0,"output_length":2,"hash_ids":[]})"),
            "t.jsonl:1: session request_1 turn 0 must have a positive input_length");
  EXPECT_EQ(ErrorOf(Row("1e308") + Row("-1e308")),
            "t.jsonl:1: session request_1 has an invalid first_arrival_timestamp_ms inf");
  // The whole trace is looked at after all rows.
  EXPECT_EQ(ErrorOf(R"({"timestamp":0,"input_length":0,"output_length":2,"hash_ids":[1]})"
                    "\n{bad"),
            "t.jsonl:2: the line is not valid JSON");
  spec_.replay_concurrency = 1;
  EXPECT_EQ(ErrorOf(Row("-5")),
            "t.jsonl:1: session request_1 has an invalid first_arrival_timestamp_ms -5");
}

TEST_F(MooncakeTest, FieldsOfTheWrongTypeAreNamed) {
  const auto with = [this](std::string_view member) {
    return ErrorOf(Row("0", "," + std::string(member)));
  };
  EXPECT_EQ(ErrorOf(R"({"timestamp":0,"input_length":10.0,"output_length":2,"hash_ids":[1]})"),
            "t.jsonl:1: input_length must be a whole number of at least 0");
  EXPECT_EQ(ErrorOf(R"({"input_tokens":-1})"),
            "t.jsonl:1: input_tokens must be a whole number of at least 0");
  EXPECT_EQ(ErrorOf(R"({"input_length":1e2})"),
            "t.jsonl:1: input_length must be a whole number of at least 0");
  EXPECT_EQ(ErrorOf(R"({"output_length":"2"})"),
            "t.jsonl:1: output_length must be a whole number of at least 0");
  EXPECT_EQ(ErrorOf(R"({"output_length":281474976710657})"),
            "t.jsonl:1: output_length must be at most 281474976710656, got 281474976710657");
  EXPECT_EQ(ErrorOf(R"({"timestamp":"0"})"), "t.jsonl:1: timestamp must be a number");
  EXPECT_EQ(ErrorOf(R"({"timestamp":1e400})"), "t.jsonl:1: timestamp must be a number");
  EXPECT_EQ(ErrorOf(R"({"timestamp":01})"), "t.jsonl:1: timestamp must be a number");
  EXPECT_EQ(ErrorOf(R"({"hash_ids":5})"), "t.jsonl:1: hash_ids must be a list of whole numbers");
  for (const char* ids : {"[1,]", "[-1]", "[1.0]", "[01]", "[1 2]", "[18446744073709551616]",
                          "[\"1\"]", "[[1]]", "[1,,2]", "[,1]", "[99999999999999999999999]"}) {
    EXPECT_EQ(ErrorOf(R"({"hash_ids":)" + std::string(ids) + "}"),
              "t.jsonl:1: hash_ids must be a list of whole numbers from 0 to 18446744073709551615")
        << ids;
  }
  EXPECT_EQ(with(R"("output_token_ids":[1,4294967296])"),
            "t.jsonl:1: output_token_ids must be a list of whole numbers from 0 to 4294967295");
  EXPECT_EQ(with(R"("session_id":5)"), "t.jsonl:1: session_id must be a string");
  EXPECT_EQ(with(R"("request_id":5)"), "t.jsonl:1: request_id must be a string");
  EXPECT_EQ(with(R"("policy_class":[])"), "t.jsonl:1: policy_class must be a string");
  EXPECT_EQ(with(R"("priority":2147483648)"),
            "t.jsonl:1: priority must be a whole number from -2147483648 to 2147483647");
  EXPECT_EQ(with(R"("priority":1.5)"),
            "t.jsonl:1: priority must be a whole number from -2147483648 to 2147483647");
  EXPECT_EQ(with(R"("strict_priority":-1)"),
            "t.jsonl:1: strict_priority must be a whole number of at least 0");
  EXPECT_EQ(with(R"("strict_priority":4294967296)"),
            "t.jsonl:1: strict_priority must be at most 4294967295, got 4294967296");
}

TEST_F(MooncakeTest, LargestIdsAreAccepted) {
  Load(
      R"({"timestamp":0,"output_length":2,"hash_ids":[18446744073709551615, 0 ,12345678,1234567]})");
  EXPECT_EQ(ReleaseAll(0.0)[0].prompt_tokens, 256U);
}

TEST_F(MooncakeTest, DuplicateFieldsAreErrorsAndUnknownOnesAreNot) {
  const auto with = [this](std::string_view member) {
    return ErrorOf(Row("0", "," + std::string(member)));
  };
  const std::string rest = " is given twice (a field and its other name count as one)";
  EXPECT_EQ(with(R"("timestamp":0)"), "t.jsonl:1: timestamp" + rest);
  EXPECT_EQ(with(R"("created_time":0)"), "t.jsonl:1: created_time" + rest);
  EXPECT_EQ(with(R"("input_tokens":0)"), "t.jsonl:1: input_tokens" + rest);
  EXPECT_EQ(with(R"("delay":0,"delay_ms":0)"), "t.jsonl:1: delay_ms" + rest);
  EXPECT_EQ(with(R"("priority":null,"priority":null)"), "t.jsonl:1: priority" + rest);
  EXPECT_EQ(with(R"("x":1,"x":2)"), "no error");
}

TEST_F(MooncakeTest, MalformedLinesAreErrorsWithTheirLine) {
  const std::string good = std::string(kRow) + "\n";
  EXPECT_EQ(ErrorOf(good + "{bad"), "t.jsonl:2: the line is not valid JSON");
  EXPECT_EQ(ErrorOf(good + "# comment\n"), "t.jsonl:2: the line is not a JSON object");
  EXPECT_EQ(ErrorOf("[" + std::string(kRow) + "]"),
            "t.jsonl:1: the line is a JSON array; one JSON object per line is needed");
  EXPECT_EQ(ErrorOf(good + "\xFF\n"), "t.jsonl:2: the line is not valid UTF-8");
  EXPECT_EQ(ErrorOf(good + Row("0", ",\"x\":\"\xC3\"")), "t.jsonl:2: the line is not valid UTF-8");
  EXPECT_EQ(ErrorOf(std::string("\0\n", 2)), "t.jsonl:1: the line is not a JSON object");
  EXPECT_EQ(ErrorOf("null"), "t.jsonl:1: the line is not a JSON object");
  const std::string more = "the line is not valid JSON, or more text follows its object";
  EXPECT_EQ(ErrorOf(std::string(kRow) + " x"), "t.jsonl:1: the line is not valid JSON");
  EXPECT_EQ(ErrorOf(std::string(kRow) + std::string(kRow)), "t.jsonl:1: " + more);
  EXPECT_NE(ErrorOf(Row("0", ",")), "no error");
  for (std::size_t cut = 1; cut < kRow.size(); ++cut) {
    EXPECT_TRUE(ErrorOf(good + std::string(kRow.substr(0, cut))).starts_with("t.jsonl:2: ")) << cut;
  }
}

TEST_F(MooncakeTest, UnknownMembersAreCheckedForSyntax) {
  for (const char* bad : {"01", "1.", "[1,]", "{\"a\":}", "\"\\q\"", "\"\\u12\"", "\"a\tb\"", "nul",
                          "truex", "+1", "'a'", "[", "{]", "[1 2]", "{\"a\" 1}", "{1:2}", ""}) {
    EXPECT_TRUE(ErrorOf(Row("0", R"(,"x":)" + std::string(bad))).starts_with("t.jsonl:1: ")) << bad;
  }
  for (const char* good :
       {"1e999", "-0.5E+3", "[]", "{}", R"(["\u00e9\n",{"a":[true,false,null]}])", R"("\ud800")",
        "\"\xC3\xA9\""}) {
    EXPECT_EQ(ErrorOf(Row("0", R"(,"x":)" + std::string(good))), "no error") << good;
  }
  EXPECT_EQ(ErrorOf(Row("0", R"(,"x":)" + std::string(300, '[') + std::string(300, ']'))),
            "no error");
  EXPECT_EQ(ErrorOf(Row("0", R"(,"x":)" + std::string(100000, '[') + std::string(100000, ']'))),
            "t.jsonl:1: x is not valid JSON");
}

TEST_F(MooncakeTest, OptionsAreCheckedFirst) {
  const auto error_of = [this](auto&& change) {
    const WorkloadSpec before = spec_;
    change();
    std::string error = ErrorOf(kRow);
    spec_ = before;
    return error;
  };
  EXPECT_EQ(error_of([&] { spec_.trace->block_size = 0; }),
            "--trace-block-size: must be greater than 0, got 0");
  EXPECT_EQ(error_of([&] { spec_.arrival_speedup_ratio = 0.0; }),
            "--arrival-speedup-ratio: must be a finite positive number, got 0");
  EXPECT_EQ(error_of([&] { spec_.replay_concurrency = 0; }),
            "--replay-concurrency: must be at least 1, got 0");
  const std::string unknown = error_of([&] { spec_.trace->format = "x"; });
  EXPECT_TRUE(unknown.starts_with("--trace-format: must be one of 'mooncake', 'mooncake-delta', "));
  EXPECT_TRUE(unknown.ends_with(", got 'x'"));
  EXPECT_EQ(error_of([&] { spec_.trace->files.emplace_back("b"); }),
            "--trace-format 'mooncake' takes exactly one trace file, got 2");
  EXPECT_EQ(error_of([&] { spec_.trace->files.clear(); }),
            "a trace replay needs at least one trace file");
  EXPECT_EQ(error_of([&] { spec_.trace->files = {"no/such/file"}; }), "no/such/file: no such file");
  spec_.arrival_speedup_ratio = 0.0;
  spec_.replay_concurrency = 1;
  EXPECT_EQ(ErrorOf(kRow), "no error");
}

TEST_F(MooncakeTest, ExtremeSizesCostNothing) {
  spec_.trace->block_size = std::int64_t{1} << 47;
  Load(R"({"timestamp":0,"output_length":2147483648,"hash_ids":[1,2]})", 1);
  const Request request = ReleaseAll(0.0)[0];
  EXPECT_EQ(request.prompt_tokens, std::uint64_t{1} << 48);
  EXPECT_EQ(request.output_tokens, 2147483648U);
  EXPECT_EQ(BlocksOf(0).size(), 3U);
  spec_.trace->block_size = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(ErrorOf(R"({"timestamp":0,"output_length":2,"hash_ids":[1,2]})"),
            "t.jsonl:1: input_length must be at most 281474976710656, got 18446744073709551614");
  // Within the capacity of the ids a short prompt is fine.
  Load(kRow);
  EXPECT_EQ(ReleaseAll(0.0)[0].prompt_tokens, 64U);
}

TEST_F(MooncakeTest, PlainRowsAndOthersAreReadAlike) {
  // A member that nobody knows sends a row the general way. Rows are damaged at random, so that
  // both ways meet every kind of mistake.
  ChaCha12 random(1);
  constexpr std::string_view kBytes = "0123456789.,:-+eE\"[]{} \t\r\n\\\xFFntu_";
  MemoryFile file;
  spec_.trace->files = {file.Path()};
  const auto outcome = [&](const std::string& text) {
    file.Write(text);
    auto loaded = LoadWorkload(spec_, 64);
    if (!loaded) {
      return loaded.error().Text();
    }
    source_ = std::move(loaded->source);
    std::string out;
    for (const Request& request : ReleaseAll(1e300)) {
      out += fmt::format("{} {} {} {};", request.id, request.arrival_ms, request.prompt_tokens,
                         request.output_tokens);
      for (const BlockExtent& extent : BlocksOf(request.id)) {
        out += fmt::format(" {}:{}", extent.group, extent.count);
      }
    }
    return out;
  };
  int errors = 0;
  for (int i = 0; i < 4000; ++i) {
    const char* const blank = random.NextBelow(2) == 0 ? "" : " ";
    std::string row = fmt::format(
        R"("timestamp":{0}{1}{2},{0}"input_length":{0}{3},{0}"output_length":{0}{4},"hash_ids":{0}[{5},{0}{6}])",
        blank, random.NextBelow(100000), random.NextBelow(2) == 0 ? "" : ".25e1",
        1 + random.NextBelow(128), random.NextBelow(3), random.NextBelow(4), random.NextU64() >> 3);
    for (std::uint32_t damage = random.NextBelow(3); damage > 0; --damage) {
      const std::size_t at = random.NextBelow(static_cast<std::uint32_t>(row.size()));
      const char byte = kBytes[random.NextBelow(static_cast<std::uint32_t>(kBytes.size()))];
      switch (random.NextBelow(3)) {
        case 0:
          row[at] = byte;
          break;
        case 1:
          row.insert(at, 1, byte);
          break;
        default:
          row.erase(at, 1);
      }
    }
    const std::string tail = "}\n" + Row("3");
    const std::string plain = outcome("{" + row + tail);
    ASSERT_EQ(plain, outcome(R"({"x":0,)" + row + tail)) << row;
    errors += plain.starts_with(file.Path()) ? 1 : 0;
  }
  EXPECT_GT(errors, 500);
  EXPECT_LT(errors, 3500);
}

TEST_F(MooncakeTest, OneLongLineIsFine) {
  std::string line = R"({"timestamp":0,"output_length":2,"hash_ids":[0)";
  for (int i = 1; i < 150000; ++i) {
    line += "," + std::to_string(i);
  }
  Load(line + "]}");
  EXPECT_EQ(ReleaseAll(0.0)[0].prompt_tokens, 64U * 150000U);
}

}  // namespace
}  // namespace dynosim::workload
