// SPDX-License-Identifier: Apache-2.0
// `dynosim predict` and `dynosim schema` as users run them: files, exit codes, standard output.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "report/run_report.h"
#include "report/summary.h"
#include "scenario/prediction.h"

namespace dynosim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDocument = R"(
traffic:
  source: {type: synthetic, input_tokens: 32, output_tokens: 4}
  load: {type: concurrency, concurrency: 2}
  stop: {requests: 6}
engine:
  model: some/model
  hardware: h200_sxm
  context_length: 2048
  workers:
    aggregated:
      kv_cache: {capacity: {type: fixed, blocks: 256}}
      timing: {type: fixed, prefill_ms: 1, decode_ms: 1}
)";

struct Finished {
  int code = -1;
  std::string out;
  std::string error;
};

class PredictCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "predict_command_test_" + std::to_string(getpid()) + "/";
    fs::create_directories(folder_);
    Write("d.yaml", kDocument);
  }
  void TearDown() override { fs::remove_all(folder_); }

  Finished Run(const std::string& arguments) const {
    const std::string command =
        "cd " + folder_ + " && " + DYNO_PROGRAM + " " + arguments + " >stdout 2>stderr";
    const int status = std::system(command.c_str());
    return {.code = WEXITSTATUS(status), .out = Content("stdout"), .error = Content("stderr")};
  }
  Finished Predict(const std::string& arguments = "") const {
    return Run("predict -c d.yaml --output-dir out " + arguments);
  }
  void Write(const std::string& name, std::string_view content) const {
    fs::create_directories(fs::path(folder_ + name).parent_path());
    std::ofstream(folder_ + name, std::ios::binary) << content;
  }
  std::string Content(const std::string& name) const {
    std::ifstream file(folder_ + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool Exists(const std::string& name) const { return fs::exists(folder_ + name); }

  std::string folder_;
};

TEST_F(PredictCommand, WritesTheReportAndPrintsTheTable) {
  const Finished done = Predict();
  EXPECT_EQ(done.code, 0) << done.error;
  EXPECT_EQ(done.error, "");
  EXPECT_NE(done.out.find("Request Count (requests)"), std::string::npos);
  EXPECT_NE(done.out.find("Engine (aggregated): 1 x vllm, 256 KV blocks of 64 tokens per rank, "
                          "timing fixed\nSaved full report to: out/prediction.json\n"),
            std::string::npos)
      << done.out;
  const auto report = ParseJson(Content("out/prediction.json"), "report");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->Find("duration_ms")->number(), 12.0);
  EXPECT_EQ(report->Find("completed_requests")->number(), 6.0);
  EXPECT_EQ(report->Find("per_request"), nullptr);
  EXPECT_FALSE(Exists("out/requests.jsonl"));
}

TEST_F(PredictCommand, PrintsTheSummaryAsOneLineOfJson) {
  const Finished done = Predict(
      "--format json --set traffic.stop.requests=3 --set "
      "traffic.stop.requests=4");
  EXPECT_EQ(done.code, 0) << done.error;
  EXPECT_EQ(done.out.find('\n'), done.out.size() - 1);
  const auto summary = ParseJson(done.out, "output");
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->Find("num_requests")->number(), 4.0);
  EXPECT_LT(done.out.find("\"committed_prefill_tokens\""), done.out.find("\"duration_ms\""));
}

TEST_F(PredictCommand, CapturesARowPerRequest) {
  EXPECT_EQ(Predict("--capture-per-request").code, 0);
  std::istringstream rows(Content("out/requests.jsonl"));
  std::string line;
  int count = 0;
  while (std::getline(rows, line)) {
    const auto row = ParseJson(line, "row");
    ASSERT_TRUE(row);
    EXPECT_EQ(row->Find("input_length")->number(), 32.0);
    ++count;
  }
  EXPECT_EQ(count, 6);
  const auto report = ParseJson(Content("out/prediction.json"), "report");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->Find("per_request")->array().size(), 6U);
}

TEST_F(PredictCommand, OverwriteReplacesKnownResultsOnly) {
  EXPECT_EQ(Predict("--capture-per-request").code, 0);
  const Finished refused = Predict();
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.error,
            "dynosim: error: --output-dir: directory out is not empty; --overwrite replaces the "
            "results in it\n");
  Write("out/notes.txt", "mine");
  Write("out/recommendation.csv", "old");
  Write("out/recommendations/0001.yaml", "old");
  Write("out/recommendations/best.yaml", "mine");
  EXPECT_EQ(Predict("--overwrite").code, 0);
  EXPECT_TRUE(Exists("out/prediction.json"));
  EXPECT_TRUE(Exists("out/notes.txt"));
  EXPECT_TRUE(Exists("out/recommendations/best.yaml"));
  EXPECT_FALSE(Exists("out/requests.jsonl"));
  EXPECT_FALSE(Exists("out/recommendation.csv"));
  EXPECT_FALSE(Exists("out/recommendations/0001.yaml"));
}

TEST_F(PredictCommand, NeverReplacesWhatItReads) {
  Write("out/requests.jsonl", R"({"timestamp":0,"input_length":8,"output_length":1,"hash_ids":[1]})"
                              "\n");
  const Finished refused = Predict(
      "--overwrite --set 'traffic={source: {type: trace, paths: [out/requests.jsonl]}, load: "
      "{type: "
      "trace_timestamps}}'");
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.error,
            "dynosim: error: --output-dir: would replace out/requests.jsonl, which this run "
            "reads\n");
  EXPECT_TRUE(Exists("out/requests.jsonl"));
}

TEST_F(PredictCommand, ExitCodesTellConfigurationFromFailure) {
  EXPECT_EQ(Run("predict").code, 2);
  EXPECT_EQ(Run("predict -c none.yaml").code, 2);
  EXPECT_EQ(Predict("--stack other").error,
            "dynosim: error: --stack: must be engine or dynamo, got 'other'\n");
  EXPECT_EQ(Predict("--format xml").code, 2);
  EXPECT_EQ(Predict("--online").error,
            "dynosim: error: --online: is not available in this version\n");
  EXPECT_EQ(Predict("--detail power").code, 2);
  EXPECT_EQ(Predict("--set traffic.stop.requests=0").code, 2);
  Write("list.yaml", "[1, 2]\n");
  EXPECT_EQ(Run("predict -c list.yaml").error,
            "dynosim: error: list.yaml: must contain one mapping, got an array\n");
  Write("file", "");
  EXPECT_EQ(Run("predict -c d.yaml --output-dir file").error,
            "dynosim: error: --output-dir: file exists and is no directory\n");
  EXPECT_FALSE(Exists("out"));
  const Finished missing = Predict(
      "--set 'traffic={source: {type: trace, paths: [nope.jsonl]}, load: {type: "
      "trace_timestamps}}'");
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(missing.error, "dynosim: error: nope.jsonl: no such file\n");
}

TEST_F(PredictCommand, ErrorsOfTheTraceNameTheDocument) {
  Write("agentic.jsonl", R"({"schema":"agentic-mooncake/v2"})"
                         "\n");
  const Finished refused = Predict(
      "--set 'traffic={source: {type: trace, format: agentic_mooncake, paths: [agentic.jsonl]}, "
      "load: {type: trace_timestamps, agentic_lanes: 1}}'");
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(refused.error.find("--"), std::string::npos) << refused.error;
}

TEST_F(PredictCommand, TheModelsOwnContextIsTheDefaultOfVllm) {
  Write("model/config.json", R"({"max_position_embeddings": 40})");
  const std::string sets =
      "--set engine.context_length=max --set engine.model=model --set "
      "traffic.source.output_tokens=100";
  EXPECT_EQ(Predict(sets).code, 0);
  const auto report = ParseJson(Content("out/prediction.json"), "report");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->Find("total_output_tokens")->number(), 48.0);  // 8 of each
}

TEST_F(PredictCommand, ATransferCountsBlocksOfTheDecodeWorker) {
  Write("pair.yaml", R"(
traffic:
  source: {input_tokens: 100, output_tokens: 2}
  load: {concurrency: 1}
  stop: {requests: 1}
engine:
  mode: disaggregated
  model: some/model
  hardware: h200_sxm
  context_length: 2048
  workers:
    prefill:
      kv_cache: {block_size: 32, capacity: {type: fixed, blocks: 100}}
      timing: {type: fixed, prefill_ms: 10, decode_ms: 0}
    decode:
      kv_cache: {block_size: 128, capacity: {type: fixed, blocks: 100}}
      timing: {type: fixed, prefill_ms: 0, decode_ms: 2}
  kv_transfer: {bytes_per_token: 1000000, bandwidth_gb_per_second: 128}
)");
  const Finished done = Run("predict -c pair.yaml --output-dir pair --format json");
  ASSERT_EQ(done.code, 0) << done.error;
  const auto summary = ParseJson(done.out, "output");
  ASSERT_TRUE(summary);
  // 10 ms of prefill, 128 tokens of 1 MB at 128 GB/s, one decode pass.
  EXPECT_EQ(summary->Find("mean_ttft_ms")->number(), 13.0);
}

TEST_F(PredictCommand, EveryExampleRuns) {
  const std::pair<std::string, double> examples[] = {
      {"aggregated", 500},           {"disaggregated", 500},   {"sglang", 640},
      {"moe_expert_parallel", 1000}, {"trace_kv_router", 334}, {"sessions_sla", 800}};
  for (const auto& [name, requests] : examples) {
    const std::string arguments = "predict -c " DYNO_SOURCE_DIR "/examples/" + name +
                                  ".yaml --stack dynamo --format json --output-dir " + name;
    fs::remove(folder_ + "examples");
    fs::create_symlink(DYNO_SOURCE_DIR "/examples", folder_ + "examples");
    const Finished done = Run(arguments);
    ASSERT_EQ(done.code, 0) << name << ": " << done.error;
    const auto summary = ParseJson(done.out, name);
    ASSERT_TRUE(summary);
    EXPECT_EQ(summary->Find("completed_requests")->number(), requests) << name;
  }
}

TEST_F(PredictCommand, SchemaIsJson) {
  const Finished done = Run("schema --stack dynamo");
  EXPECT_EQ(done.code, 0);
  const auto schema = ParseJson(done.out, "schema");
  ASSERT_TRUE(schema);
  EXPECT_EQ(schema->Find("title")->string(), "Document of dynosim predict");
  EXPECT_EQ(Run("schema --stack x").code, 2);
  const Finished other = Run("schema recommend");
  EXPECT_EQ(other.code, 0);
  EXPECT_NE(other.out.find("Document of dynosim recommend"), std::string::npos);
}

TEST_F(PredictCommand, TheLibraryGivesTheSameSummary) {
  EXPECT_EQ(Predict("--capture-per-request").code, 0);
  const auto document = ParseJson(
      R"({"traffic":{"source":{"input_tokens":32,"output_tokens":4},"load":{"concurrency":2},)"
      R"("stop":{"requests":6}},"engine":{"model":"some/model","hardware":"h200_sxm",)"
      R"("context_length":2048,"workers":{"aggregated":{"kv_cache":{"capacity":{"type":"fixed",)"
      R"("blocks":256}},"timing":{"type":"fixed","prefill_ms":1,"decode_ms":1}}}}})",
      "document");
  ASSERT_TRUE(document);
  const auto scenario = scenario::BuildPrediction(*document, scenario::Stack::kEngine, "document");
  ASSERT_TRUE(scenario) << scenario.error().Text();
  const auto run = report::RunScenario(*scenario);
  ASSERT_TRUE(run);
  const Json written = *ParseJson(Content("out/prediction.json"), "");
  const Json summary = report::SummaryJson(run->summary);
  for (const Json::Member& member : summary.object()) {
    const bool of_the_clock = member.first == "runtime" || member.first == "wall_time_ms" ||
                              member.first.starts_with("processed_tokens_per_s") ||
                              member.first.starts_with("processed_output_tokens_per_s");
    if (!of_the_clock) {
      EXPECT_EQ(DumpJson(*written.Find(member.first)), DumpJson(member.second)) << member.first;
    }
  }
}

}  // namespace
}  // namespace dynosim
