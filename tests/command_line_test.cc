// SPDX-License-Identifier: Apache-2.0
// The program as users run it: exit codes, one-line errors, files, and interruption.
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"

namespace dynosim {
namespace {

namespace fs = std::filesystem;

struct Finished {
  int code = -1;
  std::string out;
  std::string error;
};

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class CommandLine : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "command_line_test_" + std::to_string(getpid()) + "/";
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Starts the program; its outputs go to files of the folder.
  pid_t Start(const std::vector<std::string>& arguments) const {
    const pid_t child = fork();
    if (child == 0) {
      std::vector<std::string> words = {DYNO_PROGRAM};
      words.insert(words.end(), arguments.begin(), arguments.end());
      std::vector<char*> argv;
      for (std::string& word : words) {
        argv.push_back(word.data());
      }
      argv.push_back(nullptr);
      if (std::freopen((folder_ + "out").c_str(), "w", stdout) == nullptr ||
          std::freopen((folder_ + "err").c_str(), "w", stderr) == nullptr) {
        _exit(98);
      }
      execv(argv[0], argv.data());
      _exit(99);
    }
    return child;
  }
  Finished Wait(pid_t child) const {
    int status = 0;
    waitpid(child, &status, 0);
    return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
            .out = Content(folder_ + "out"),
            .error = Content(folder_ + "err")};
  }
  Finished Run(const std::vector<std::string>& arguments) const { return Wait(Start(arguments)); }

  std::string Write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ + name, std::ios::binary) << content;
    return folder_ + name;
  }

  std::string folder_;
};

constexpr std::string_view kRow =
    R"({"timestamp":0,"input_length":64,"output_length":3,"hash_ids":[1]})"
    "\n";

TEST_F(CommandLine, VersionAndHelpGoToStandardOutput) {
  const Finished version = Run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_TRUE(version.out.starts_with("dynosim ")) << version.out;
  EXPECT_EQ(version.error, "");
  const Finished help = Run({"replay", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find("--extra-engine-args"), std::string::npos);
  // Names of later versions are not advertised.
  EXPECT_EQ(help.out.find("--planner-config"), std::string::npos);
}

TEST_F(CommandLine, UsageErrorsAreOneLineWithExitCode2) {
  const std::string trace = Write("t.jsonl", std::string(kRow));
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{}, "a command is needed: replay, serve, mocker, frontend or trace; see dynosim --help"},
      {{"predict"}, "unexpected argument 'predict'"},
      {{"--verison"}, "unknown flag --verison; did you mean --version?"},
      {{"replay"},
       "provide either a trace file or all of --input-tokens, --output-tokens, --request-count"},
      {{"replay", trace, "--num-worker=3"},
       "unknown flag --num-worker; did you mean --num-workers?"},
      {{"replay", trace, "--num-workers", "-1"},
       "--num-workers: must be an integer from 1 to 65536, got \"-1\""},
      {{"replay", trace, "--kv-event-lag-ms", "-1.0"},
       "--kv-event-lag-ms: is not available in this version (it belongs to the KV router)"},
      {{"replay", trace, "--router-mode", "kv_router"},
       "--router-mode: kv_router is not available in this version"},
      {{"replay", trace, "--extra-engine-args", R"({"engine":{"blocksize":4}})"},
       "--extra-engine-args: engine: unknown field \"blocksize\"; did you mean \"block_size\"?"},
      {{"replay", trace, "--trace-format", "nope"},
       "--trace-format: must be one of 'mooncake', 'mooncake-delta', 'agentic_mooncake', 'weka', "
       "'applied_compute_agentic', 'dynamo', 'azure', 'burstgpt', 'bailian', 'lengths', got "
       "'nope'"},
      {{"replay", trace, "--report-json", trace},
       "--report-json: would overwrite the trace file " + trace},
      {{"replay", trace, "--report-jsonl", folder_},
       "--report-jsonl: " + folder_ + " is a directory"},
  };
  for (const auto& [arguments, message] : cases) {
    const Finished run = Run(arguments);
    EXPECT_EQ(run.code, 2) << message;
    EXPECT_EQ(run.error, "dynosim: error: " + message + "\n");
    EXPECT_EQ(run.out, "");
  }
}

TEST_F(CommandLine, AMissingValueIsAUsageError) {
  const Finished run = Run({"replay", "--num-workers"});
  EXPECT_EQ(run.code, 2);
  EXPECT_TRUE(run.error.starts_with("dynosim: error: --num-workers")) << run.error;
}

TEST_F(CommandLine, InputErrorsHaveExitCode1AndNameFileAndLine) {
  const std::string missing = folder_ + "missing.jsonl";
  Finished run = Run({"replay", missing, "--report-json", folder_ + "r.json"});
  EXPECT_EQ(run.code, 1);
  EXPECT_EQ(run.error, "dynosim: error: " + missing + ": no such file\n");
  const std::string cut = Write("cut.jsonl", std::string(kRow) + "{\"timestamp\":");
  run = Run({"replay", cut, "--report-json", folder_ + "r.json"});
  EXPECT_EQ(run.code, 1);
  EXPECT_TRUE(run.error.starts_with("dynosim: error: " + cut + ":2: ")) << run.error;
  EXPECT_FALSE(fs::exists(folder_ + "r.json"));
}

TEST_F(CommandLine, ARunPrintsTheTableAndWritesItsFiles) {
  const std::string trace = Write("t.jsonl", std::string(kRow));
  const std::string report = folder_ + "deep/er/r.json";
  const Finished run =
      Run({"replay", trace, "--trace-block-size", "64", "--report-json", report, "--report-jsonl",
           folder_ + "rows.jsonl", "--telemetry-jsonl", folder_ + "samples.jsonl"});
  ASSERT_EQ(run.code, 0) << run.error;
  EXPECT_EQ(run.error, "");  // no progress line without a terminal
  EXPECT_TRUE(run.out.ends_with("\nSaved full report to: " + report + "\n")) << run.out;
  const auto parsed = ParseJson(Content(report), report);
  ASSERT_TRUE(parsed) << parsed.error().Text();
  EXPECT_EQ(parsed->Find("completed_requests")->number(), 1.0);
  const std::string rows = Content(folder_ + "rows.jsonl");
  EXPECT_TRUE(ParseJson(rows, "rows")) << rows;
  EXPECT_NE(Content(folder_ + "samples.jsonl").find("\"baseline\""), std::string::npos);
}

TEST_F(CommandLine, AFolderAsReportGetsTheDefaultName) {
  const std::string trace = Write("t.jsonl", std::string(kRow));
  fs::create_directory(folder_ + "reports");
  const Finished run = Run({"replay", trace, "--report-json", folder_ + "reports"});
  ASSERT_EQ(run.code, 0) << run.error;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_ + "reports")) {
    names.push_back(entry.path().filename());
  }
  ASSERT_EQ(names.size(), 1U);
  EXPECT_TRUE(names[0].starts_with("dynamo_replay_report_2")) << names[0];
  EXPECT_EQ(names[0].size(), std::string_view("dynamo_replay_report_20260109_070503.json").size());
}

TEST_F(CommandLine, TheLastOfARepeatedFlagCounts) {
  const std::string trace = Write("t.jsonl", std::string(kRow));
  const Finished run = Run({"replay", trace, "--num-workers", "0", "--num-workers", "2",
                            "--report-json", folder_ + "r.json"});
  EXPECT_EQ(run.code, 0) << run.error;
}

TEST_F(CommandLine, AReportThatCannotBeWrittenStillShowsTheTable) {
  const std::string trace = Write("t.jsonl", std::string(kRow));
  const Finished run = Run({"replay", trace, "--report-json", "/dev/full"});
  EXPECT_EQ(run.code, 1);
  EXPECT_TRUE(run.error.starts_with("dynosim: error: /dev/full")) << run.error;
  EXPECT_NE(run.out.find("Request Count"), std::string::npos);
  EXPECT_EQ(run.out.find("Saved full report"), std::string::npos);
}

TEST_F(CommandLine, AnInterruptedRunExitsWith130AndWritesNothing) {
  const std::string report = folder_ + "r.json";
  // A run of many seconds.
  const pid_t child =
      Start({"replay", "--input-tokens", "100", "--output-tokens", "100", "--request-count",
             "2000000", "--replay-concurrency", "3", "--pass-by-pass", "--report-json", report});
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  kill(child, SIGINT);
  const Finished run = Wait(child);
  EXPECT_EQ(run.code, 130);
  EXPECT_EQ(run.error, "dynosim: interrupted; nothing was written\n");
  EXPECT_FALSE(fs::exists(report));
}

}  // namespace
}  // namespace dynosim
