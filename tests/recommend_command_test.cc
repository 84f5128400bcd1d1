// SPDX-License-Identifier: Apache-2.0
// `dynosim recommend` as users run it: ranking, files, exit codes, kill and resume.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cases_for_test.h"
#include "base/json.h"

namespace dynosim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDocument = R"(
traffic:
  source: {type: synthetic, input_tokens: 32, output_tokens: 4}
  load: {type: concurrency, concurrency: {choices: [1, 2]}}
  stop: {requests: 6}
engine:
  mode: aggregated
  model: some/model
  hardware: h200_sxm
  backend: vllm
  context_length: 2048
  workers:
    aggregated:
      parallelism:
        preset:
          - {replicas: 1, tensor: 1, pipeline: 1, attention_data: 1, moe_tensor: 1, moe_expert: 1}
          - {replicas: 2, tensor: 1, pipeline: 1, attention_data: 1, moe_tensor: 1, moe_expert: 1}
      scheduler: {max_batched_tokens: 8192, max_sequences: 256}
      kv_cache: {capacity: {type: fixed, blocks: 256}}
      timing: {type: fixed, prefill_ms: 1, decode_ms: 1}
optimization:
  target: throughput
  constraints: {max_candidate_gpus: 2}
)";

// Enough candidates for a search that can be caught in the middle.
constexpr std::string_view kMany =
    kSanitized ? "--set 'traffic.load.concurrency={range: {min: 1, max: 60, step: 1}}' "
                 "--set traffic.stop.requests=2000 --set optimization.target=e2e_latency"
               : "--set 'traffic.load.concurrency={range: {min: 1, max: 60, step: 1}}' "
                 "--set traffic.stop.requests=20000 --set optimization.target=e2e_latency";

struct Finished {
  int code = -1;
  std::string out;
  std::string error;
};

class RecommendCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "recommend_command_test_" + std::to_string(getpid()) + "/";
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
  Finished Recommend(std::string_view arguments = "", const std::string& out = "out") const {
    return Run("recommend -c d.yaml --output-dir " + out + " " + std::string(arguments));
  }
  void Write(const std::string& name, std::string_view content) const {
    std::ofstream(folder_ + name, std::ios::binary) << content;
  }
  std::string Content(const std::string& name) const {
    std::ifstream file(folder_ + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool Exists(const std::string& name) const { return fs::exists(folder_ + name); }

  // Kills a search in the middle. On a busy machine it may be over before that; then again.
  void KillInTheMiddle(std::string_view arguments, std::uintmax_t bytes) const {
    for (int attempt = 0; attempt < 5 && !Exists("out/recommendation.journal"); ++attempt) {
      fs::remove_all(folder_ + "out");
      KillWhenLong(arguments, bytes);
    }
  }
  // Starts a search and kills it when its journal has so many bytes.
  void KillWhenLong(std::string_view arguments, std::uintmax_t bytes) const {
    const std::string command = "cd " + folder_ + " && exec " + DYNO_PROGRAM +
                                " recommend -c d.yaml --output-dir out " + std::string(arguments) +
                                " >stdout 2>stderr";
    const pid_t child = fork();
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    const std::string journal = folder_ + "out/recommendation.journal";
    std::error_code error;
    for (int i = 0; i < 20'000; ++i) {
      const std::uintmax_t size = fs::file_size(journal, error);
      if (!error && size > bytes) {
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }

  std::string folder_;
};

TEST_F(RecommendCommand, RanksByScoreThenFewerGpus) {
  const Finished done = Recommend();
  EXPECT_EQ(done.code, 0) << done.error;
  EXPECT_EQ(done.out,
            "AISimulate recommendations\n"
            "1: score=2000 used_gpus=1 config=out/recommendations/0001.yaml\n"
            "2: score=2000 used_gpus=2 config=out/recommendations/0002.yaml\n"
            "3: score=1000 used_gpus=1 config=out/recommendations/0003.yaml\n"
            "4: score=1000 used_gpus=2 config=out/recommendations/0004.yaml\n"
            "4 evaluated, 4 feasible\n"
            "Saved full result to: out/recommendation.json\n");
  EXPECT_FALSE(Exists("out/recommendation.journal"));
  const auto result = ParseJson(Content("out/recommendation.json"), "result");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->Find("candidates")->array().size(), 4U);
  EXPECT_EQ(result->Find("views")->Find("top_n")->array()[0].string(), "candidate-000003");
  const std::string csv = Content("out/recommendation.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5);
}

TEST_F(RecommendCommand, RecommendationsRunAsPredictionsWithTheSameNumbers) {
  ASSERT_EQ(Recommend().code, 0);
  const Finished predicted =
      Run("predict -c out/recommendations/0001.yaml --output-dir p --format json");
  EXPECT_EQ(predicted.code, 0) << predicted.error;
  const auto summary = ParseJson(predicted.out, "summary");
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->Find("output_throughput_tok_s")->number(), 2000.0);
  EXPECT_EQ(summary->Find("num_requests")->number(), 6.0);
}

TEST_F(RecommendCommand, SaysInOneLineWhyNothingIsFeasible) {
  const Finished done =
      Recommend("--set optimization.strict_sla=true --set 'evaluation.sla={ttft_ms: 0.5}'");
  EXPECT_EQ(done.code, 1);
  EXPECT_EQ(done.error,
            "4 evaluated, 4 infeasible\n"
            "  sla_constraint, such as candidate-000001: mean TTFT is 1 ms, more than the bound of "
            "0.5 ms\n"
            "dynosim: error: no feasible candidate found; saved full result to: "
            "out/recommendation.json\n");
  EXPECT_TRUE(Exists("out/recommendation.json"));
}

TEST_F(RecommendCommand, RefusesWhatItCannotSearch) {
  const auto error = [&](const std::string& set) {
    const Finished done = Recommend("--set '" + set + "'");
    EXPECT_EQ(done.code, 2) << set;
    EXPECT_FALSE(Exists("out")) << set;
    return done.error;
  };
  EXPECT_EQ(error("optimizer.max_trials=3"),
            "dynosim: error: d.yaml: optimizer.algorithm: bayesian (the default) needs the Python "
            "package for more than optimizer.max_trials 3 candidates: python3 -m "
            "dynosim.recommend -c d.yaml, or --set optimizer.algorithm=random\n");
  EXPECT_EQ(error("optimization.target=goodput"),
            "dynosim: error: d.yaml: optimization.target: goodput requires an evaluation.sla "
            "bound\n");
  EXPECT_NE(error("traffic.stop.requests={choices: [1, 2]}").find("takes no choices or range"),
            std::string::npos);
  EXPECT_NE(error("optimization.constraints.max_candidate_gpus=1").find("has 2 GPUs, more than"),
            std::string::npos);
  EXPECT_NE(error("engine.workers.aggregated.parallelism.tensor=1").find("with preset"),
            std::string::npos);
  EXPECT_NE(error("engine.workers.aggregated.scheduler.max_sequencess=1").find("max_sequences"),
            std::string::npos);
  EXPECT_NE(error("optimizer={algorithm: grid, max_trials: 3}").find("at most"), std::string::npos);
}

TEST_F(RecommendCommand, AlgorithmsThatMayTryEveryPointDoSo) {
  const Finished grid = Recommend("--set optimizer.algorithm=grid", "grid");
  ASSERT_EQ(grid.code, 0) << grid.error;
  for (const std::string name : {"bayesian", "auto"}) {
    EXPECT_EQ(Recommend("--set optimizer.algorithm=" + name, name).code, 0);
    EXPECT_EQ(Content(name + "/recommendation.csv"), Content("grid/recommendation.csv"));
  }
}

TEST_F(RecommendCommand, AKilledSearchGoesOnToTheSameResult) {
  ASSERT_EQ(Recommend(kMany, "whole").code, 0);
  KillInTheMiddle(kMany, 60'000);
  ASSERT_TRUE(Exists("out/recommendation.journal"));
  ASSERT_FALSE(Exists("out/recommendation.json"));
  EXPECT_EQ(Recommend(kMany).code, 2);  // neither --resume nor --overwrite
  // A line that was being written.
  std::ofstream(folder_ + "out/recommendation.journal", std::ios::app) << R"({"trial":7,"res)";
  const Finished resumed = Recommend(std::string(kMany) + " --resume");
  EXPECT_EQ(resumed.code, 0) << resumed.error;
  EXPECT_EQ(Content("out/recommendation.json"), Content("whole/recommendation.json"));
  EXPECT_EQ(Content("out/recommendation.csv"), Content("whole/recommendation.csv"));
  EXPECT_EQ(Content("out/recommendations/0001.yaml"), Content("whole/recommendations/0001.yaml"));
}

TEST_F(RecommendCommand, AnotherDocumentDoesNotGoOn) {
  KillInTheMiddle(kMany, 10'000);
  const Finished refused = Recommend("--resume");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.error.find("belongs to another document"), std::string::npos) << refused.error;
}

TEST_F(RecommendCommand, OneCandidateAtATimeGivesTheSameFile) {
  ASSERT_EQ(Recommend("", "a").code, 0);
  ASSERT_EQ(Recommend("--set optimizer.parallelism=1", "b").code, 0);
  EXPECT_EQ(Content("a/recommendation.json"), Content("b/recommendation.json"));
}

TEST_F(RecommendCommand, ThePageHoldsEveryCandidateAndNeverTakesThePlaceOfTheDocument) {
  ASSERT_EQ(Recommend("--report-html page.html").code, 0);
  const std::string page = Content("page.html");
  EXPECT_TRUE(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"));
  for (const std::string candidate : {"candidate-000001", "candidate-000004"}) {
    EXPECT_NE(page.find(candidate), std::string::npos) << candidate;
  }
  const Finished refused = Recommend("--overwrite --report-html d.yaml");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.error.find("--report-html: would overwrite "), std::string::npos)
      << refused.error;
}

TEST_F(RecommendCommand, ACandidateThatTakesTooLongIsTimedOut) {
  const Finished done = Recommend("--set optimizer.candidate_timeout_seconds=1e-9");
  EXPECT_EQ(done.code, 1);
  EXPECT_NE(done.error.find("4 evaluated, 4 timed_out\n  runtime_timeout, such as"),
            std::string::npos)
      << done.error;
}

}  // namespace
}  // namespace dynosim
