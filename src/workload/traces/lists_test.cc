// SPDX-License-Identifier: Apache-2.0
// Formats without dependencies that users bring: Azure, BurstGPT, Bailian and plain lengths.
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <zlib.h>

#include "workload/trace_test_case.h"
#include "workload/traces/detect.h"

namespace dynosim::workload {
namespace {

class ListsTest : public TraceTestCase {
 protected:
  ListsTest() : TraceTestCase("azure") {}
  std::vector<double> Arrivals(const std::string& format, std::string_view text) {
    spec_.trace->format = format;
    Load(text);
    requests_.clear();
    Release(1e300);
    std::vector<double> arrivals;
    for (const Request& request : requests_) {
      arrivals.push_back(request.arrival_ms);
    }
    return arrivals;
  }
  std::string Error(const std::string& format, std::string_view text) {
    spec_.trace->format = format;
    return ErrorOf(text);
  }
};

constexpr std::string_view kAzure =
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    "2023-11-16 18:15:46.6805900,374,44\r\n"
    "2023-11-16 18:15:50.9951690,396,109";

TEST_F(ListsTest, AzureTimesKeepTheirLastDigit) {
  EXPECT_EQ(Arrivals("azure", kAzure), (std::vector<double>{0.0, 4314.579}));
  EXPECT_EQ(requests_[1].prompt_tokens, 396U);
  EXPECT_EQ(requests_[1].output_tokens, 109U);
  EXPECT_NE(Prompt(0)[0], Prompt(1)[0]);
}

TEST_F(ListsTest, AzureTimesMayHaveAZoneAndNoFraction) {
  EXPECT_EQ(Arrivals("azure",
                     "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-02-29T00:00:00Z,1,1\n"
                     "2024-02-29 02:00:01+02:00,1,1\n2024-03-01 00:00:00.5,1,1\n"),
            (std::vector<double>{0.0, 1000.0, 86'400'500.0}));
}

TEST_F(ListsTest, UnsortedTimesStartAtTheEarliest) {
  EXPECT_EQ(Arrivals("azure",
                     "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-01-01 00:00:02,1,1\n"
                     "2024-01-01 00:00:01,2,1\n"),
            (std::vector<double>{0.0, 1000.0}));
  EXPECT_EQ(warnings_.size(), 1U);  // the order, and no negative times
}

TEST_F(ListsTest, BurstGptIsInSeconds) {
  EXPECT_EQ(Arrivals("burstgpt",
                     "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
                     "5,ChatGPT,472,18,490,Conversation log\n"
                     "45.5,\"GPT-4, \"\"turbo\"\"\",1087,0,1317,API log\n"),
            (std::vector<double>{0.0, 40500.0}));
  EXPECT_EQ(requests_[1].prompt_tokens, 1087U);
  EXPECT_EQ(requests_[1].output_tokens, 0U);
}

TEST_F(ListsTest, BailianIsInSecondsWithBlocksOf16Tokens) {
  EXPECT_EQ(
      Arrivals(
          "bailian",
          R"({"chat_id":1,"parent_chat_id":-1,"timestamp":0.5,"input_length":20,"output_length":3,"type":"text","turn":1,"hash_ids":[7,8]}
{"chat_id":2,"parent_chat_id":1,"timestamp":2,"input_length":33,"output_length":3,"type":"text","turn":2,"hash_ids":[7,8,9]}
)"),
      (std::vector<double>{0.0, 1500.0}));
  EXPECT_EQ(Prompt(0)[15], Prompt(1)[15]);
  EXPECT_EQ(Prompt(1).size(), 33U);
}

TEST_F(ListsTest, LengthsAreJsonOrCsvInNanoseconds) {
  EXPECT_EQ(
      Arrivals("lengths", R"({"input_toks": 27, "output_toks": 16, "arrival_time_ns": 101537000}
{"input_toks": 13, "output_toks": 5, "arrival_time_ns": 144370001}
)"),
      (std::vector<double>{0.0, 42.833001}));
  EXPECT_EQ(Arrivals("lengths",
                     "arrival_time_ns,input_toks,output_toks\n1700000000000000000,5,6\n"
                     "1700000000000000001,7,8\n"),
            (std::vector<double>{0.0, 1e-6}));
  EXPECT_EQ(requests_[1].prompt_tokens, 7U);
}

TEST_F(ListsTest, LengthsWithoutTimesNeedAConcurrency) {
  const std::string_view text = R"({"input_toks": 27, "output_toks": 16})";
  EXPECT_NE(Error("lengths", text).find("replay_concurrency"), std::string::npos);
  spec_.replay_concurrency = 1;
  EXPECT_EQ(Error("lengths", text), "no error");
}

TEST_F(ListsTest, ErrorsNameLineAndColumn) {
  const std::string header = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  EXPECT_EQ(Error("azure", "a,b\n"), "t.jsonl:1: the header has no column TIMESTAMP");
  EXPECT_EQ(Error("azure", ""), "t.jsonl:0: the file is empty; a header line is needed");
  EXPECT_EQ(Error("azure", header), "t.jsonl: the trace contains no requests");
  EXPECT_EQ(Error("azure", header + "yesterday,1,1\n"),
            "t.jsonl:2: TIMESTAMP must be a date and time like 2023-11-16 18:15:46.6805900, got "
            "'yesterday'");
  EXPECT_EQ(Error("azure", header + "2023-02-30 00:00:00,1,1\n").substr(0, 30),
            "t.jsonl:2: TIMESTAMP must be a");
  EXPECT_EQ(Error("azure", header + "2023-11-16 18:15:46,-1,1\n"),
            "t.jsonl:2: ContextTokens must be a whole number of at least 0, got '-1'");
  EXPECT_EQ(Error("azure", header + "\n2023-11-16 18:15:46,1\n"),
            "t.jsonl:3: the row has 2 cells, the header 3");
  EXPECT_EQ(Error("azure", header + "\"2023-11-16 18:15:46,1,1\n"),
            "t.jsonl:2: a quoted cell has no closing quote on its line");
  EXPECT_EQ(Error("azure", header + "2023-11-16 18:15:46,0,1\n"),
            "t.jsonl:2: session request_2 turn 0 must have a positive input_length");
  EXPECT_EQ(
      Error("bailian", R"({"timestamp":1,"input_length":20,"output_length":1,"hash_ids":[1]})"),
      "t.jsonl:1: input_length 20 exceeds the capacity 16 of its hash_ids (1 ids of 16 tokens)");
  EXPECT_EQ(Error("bailian", R"({"timestamp":1,"input_length":20,"hash_ids":[1,2]})"),
            "t.jsonl:1: output_length is missing");
  EXPECT_EQ(Error("lengths", R"({"input_toks":1})"), "t.jsonl:1: output_toks is missing");
  EXPECT_EQ(Error("x", "").substr(0, 30), "--trace-format: must be one of");
}

TEST_F(ListsTest, PackedFilesAreRead) {
  const std::string path = (folder_ / "t.csv.gz").string();
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, kAzure.data(), static_cast<unsigned>(kAzure.size()));
  gzclose(file);
  spec_.trace->files = {path};
  LoadFiles();
  EXPECT_EQ(source_->RequestCount(), 2U);
}

TEST_F(ListsTest, TheFormatOfAFileIsGuessed) {
  const auto detect = [this](std::string_view text) {
    Write("t", text);
    const Result<std::string> format = DetectFormat((folder_ / "t").string());
    return format ? *format : "none";
  };
  EXPECT_EQ(detect(kAzure), "azure");
  EXPECT_EQ(detect("Timestamp,Model,Request tokens\n"), "burstgpt");
  EXPECT_EQ(detect("input_toks,output_toks\n"), "lengths");
  EXPECT_EQ(detect(R"({"input_toks":1})"), "lengths");
  EXPECT_EQ(detect(R"({"chat_id":1,"hash_ids":[1]})"), "bailian");
  EXPECT_EQ(detect("\n"
                   R"({"timestamp":1,"hash_ids":[1]})"),
            "mooncake");
  EXPECT_EQ(detect(R"({"num_turns":1})"), "applied_compute_agentic");
  EXPECT_EQ(detect(R"({"event":{}})"), "dynamo");
  EXPECT_EQ(detect(R"({"hash_id_scope":"local","requests":[]})"), "weka");
  EXPECT_EQ(detect(R"({"schema":"s","hash_id_scope":"local"})"), "agentic_mooncake");
  EXPECT_EQ(detect("hello"), "none");
  EXPECT_EQ(detect(""), "none");
  EXPECT_EQ(DetectFormat(folder_.string()), "weka");
}

}  // namespace
}  // namespace dynosim::workload
