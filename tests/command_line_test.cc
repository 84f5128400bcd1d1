// SPDX-License-Identifier: Apache-2.0
// The program as users run it: exit codes, one-line errors, files, and interruption.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
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
      {{}, "a command is needed, such as predict or replay; see dynosim --help"},
      {{"predct"}, "unknown command 'predct'; did you mean predict?"},
      {{"--verison"}, "unknown flag --verison; did you mean --version?"},
      {{"replay"},
       "provide either a trace file or all of --input-tokens, --output-tokens, --request-count"},
      {{"replay", trace, "--num-worker=3"},
       "unknown flag --num-worker; did you mean --num-workers?"},
      {{"replay", trace, "--num-workers", "-1"},
       "--num-workers: must be an integer from 1 to 65536, got \"-1\""},
      {{"replay", trace, "--planner-config", "p.json"},
       "--planner-config: is not available in this version (it belongs to the planner)"},
      {{"replay", trace, "--extra-engine-args", R"({"engine":{"blocksize":4}})"},
       "--extra-engine-args: engine: unknown field \"blocksize\"; did you mean \"block_size\"?"},
      {{"replay", trace, "--trace-format", "nope"},
       "--trace-format: must be one of 'mooncake', 'mooncake-delta', 'agentic_mooncake', 'weka', "
       "'applied_compute_agentic', 'dynamo', 'azure', 'burstgpt', 'bailian', 'lengths', got "
       "'nope'"},
      {{"replay", trace, "--report-json", trace},
       "--report-json: would overwrite " + trace + ", which this run reads"},
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

TEST_F(CommandLine, RouterFlagsThatDoNotFitAreNamed) {
  const std::string trace = Write("t.jsonl", std::string(kRow));
  const std::string classes = Write("classes.yaml", "policy_classes: []\n");
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all = {"replay", trace, "--router-mode", "kv_router"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"replay", trace, "--router-mode", "fastest"},
       "--router-mode: must be round_robin, kv_router, random, least_loaded or power_of_two, got "
       "'fastest'"},
      {with({"--router-config", "{\"overlap_credit\":1}"}),
       "--router-config: unknown field \"overlap_credit\""},
      {with({"--router-config", "[]"}), "--router-config: must be a JSON object"},
      {with({"--router-config", R"({"router_temperature":-1})"}),
       "--router-config: router_temperature: must be"},
      {with({"--router-config", R"({"router_prefill_load_model":"ais"})"}),
       "--router-config: router_prefill_load_model ais needs a deployment: --aic-backend"},
      {with({"--router-config", R"({"router_queue_policy":"best"})"}),
       "--router-config: router_queue_policy: must be one of fcfs, lcfs, wspt"},
      {with({"--router-config", R"({"durable_kv_events":true})"}),
       "--router-config: durable_kv_events: true is not supported"},
      {with({"--kv-event-lag-ms", "-1"}),
       "--kv-event-lag-ms: must be a finite number >= 0, got '-1'"},
      {with({"--router-seed", "x"}), "--router-seed: must be an integer >= 0, got 'x'"},
      {with({"--router-policy-config", classes}),
       classes + ": invalid router policy config: default_policy_family"},
      {with({"--router-policy-config", folder_ + "none.yaml"}),
       "failed to read router policy config " + folder_ + "none.yaml"},
      {with({"--model-name", "m"}), "--model-name: selects a profile of a policy file"},
      {{"replay", trace, "--kv-event-lag-ms", "1"},
       "--kv-event-lag-ms: only applies to --router-mode kv_router, got 'round_robin'"},
      {{"replay", trace, "--router-mode", "random", "--router-config", "{}"},
       "--router-config: only applies to --router-mode kv_router, got 'random'"},
      {{"replay", trace, "--router-seed", "1"},
       "--router-seed: does not apply: round_robin draws no random numbers"},
      {{"replay", trace, "--router-mode", "random", "--capture-routing"},
       "--capture-routing: does not apply: random compares no targets"},
      {{"replay", trace, "--extra-engine-args",
        R"({"engine":{},"dynamo":{"router_queue_policy":"wspt"}})"},
       "--extra-engine-args: dynamo.router_queue_policy only applies to --router-mode kv_router"},
  };
  for (const auto& [arguments, message] : cases) {
    const Finished run = Run(arguments);
    EXPECT_EQ(run.code, 2) << message;
    EXPECT_TRUE(run.error.starts_with("dynosim: error: " + message)) << run.error << message;
    EXPECT_EQ(std::ranges::count(run.error, '\n'), 1);
  }
}

TEST_F(CommandLine, ADecisionIsExplainedAndCanBeRepeated) {
  std::string rows;
  for (int i = 0; i < 6; ++i) {
    rows += R"({"timestamp":0,"input_length":128,"output_length":3,"hash_ids":[)" +
            std::to_string(i) + "]}\n";
  }
  const std::string trace = Write("t.jsonl", rows);
  const std::string first = folder_ + "first.json";
  const std::vector<std::string> base = {"replay", trace, "--num-workers", "3"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return Run(more);
  };
  ASSERT_EQ(with({"--router-mode", "kv_router", "--capture-routing", "--report-json", first}).code,
            0);
  const Finished explained = Run({"explain", first, "--request", "4"});
  ASSERT_EQ(explained.code, 0) << explained.error;
  EXPECT_TRUE(explained.out.starts_with("request 00000000-0000-0000-0000-000000000004: arrival"))
      << explained.out;
  EXPECT_NE(explained.out.find("pool agg, immediate: worker "), std::string::npos);
  EXPECT_NE(explained.out.find("prompt tokens ahead"), std::string::npos);
  EXPECT_EQ(std::ranges::count(explained.out, '>'), 1);
  EXPECT_EQ(std::ranges::count(explained.out, '\n'), 7);

  const std::string again = folder_ + "again.json";
  ASSERT_EQ(with({"--router-mode", "kv_router", "--router-seed", "7", "--placements", first,
                  "--report-json", again})
                .code,
            0);
  const auto report = ParseJson(Content(again), again);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->Find("placements_forced")->number(), 6.0);
  EXPECT_EQ(report->Find("placements_outside_minimum")->number(), 0.0);
  const auto before = ParseJson(Content(first), first);
  EXPECT_EQ(report->Find("duration_ms")->number(), before->Find("duration_ms")->number());

  // Two workers are one too few for the targets of three.
  const Finished fewer = Run({"replay", trace, "--num-workers", "2", "--placements", first,
                              "--report-json", folder_ + "fewer.json"});
  EXPECT_EQ(fewer.code, 1);
  EXPECT_NE(fewer.error.find("names target 2, but the pool has 2"), std::string::npos)
      << fewer.error;
  const std::string other = Write("other.jsonl", std::string(kRow));
  const Finished none = Run({"replay", other, "--num-workers", "3", "--placements", first,
                             "--report-json", folder_ + "none.json"});
  EXPECT_EQ(none.code, 1);
  EXPECT_NE(none.error.find("--placements: no row of the report matches the request"),
            std::string::npos)
      << none.error;
  EXPECT_FALSE(fs::exists(folder_ + "none.json"));
}

TEST_F(CommandLine, ExplainRefusesWhatIsNoReportAndRequestsThatAreNotThere) {
  const std::pair<std::string, std::string> cases[] = {
      {"{}", "has no per_request rows"},
      {"[1]", "has no per_request rows"},
      {R"({"per_request":[]})", "has no row for request '1'"},
      {R"({"per_request":[3,null,{"uuid":5}]})", "has no row for request '1'"},
      {"{", "syntax error"},
  };
  for (const auto& [text, message] : cases) {
    const Finished run = Run({"explain", Write("r.json", text), "--request", "1"});
    EXPECT_EQ(run.code, 1) << text;
    EXPECT_NE(run.error.find(message), std::string::npos) << run.error;
  }
  const std::string odd = Write(
      "r.json", R"({"per_request":[{"request_id":"1","routing_history":[4,{"candidates":[5]}]}]})");
  EXPECT_EQ(Run({"explain", odd, "--request", "1"}).code, 0);
  EXPECT_EQ(Run({"explain", odd}).code, 2);
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

TEST_F(CommandLine, DefaultReportsNeverTakeThePlaceOfEachOther) {
  const std::string trace = Write("t.jsonl", std::string(kRow));
  fs::create_directory(folder_ + "reports");
  for (int run = 0; run < 4; ++run) {
    const Finished done = Run({"replay", trace, "--report-json", folder_ + "reports"});
    ASSERT_EQ(done.code, 0) << done.error;
    const auto at = done.out.find("Saved full report to: ") + 22;
    EXPECT_TRUE(fs::exists(done.out.substr(at, done.out.find('\n', at) - at))) << done.out;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ + "reports"), {}), 4);
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

TEST_F(CommandLine, CompareExitsWith0ForEqualRunsAnd1ForDifferentOnes) {
  const std::string trace = Write("t.jsonl", std::string(kRow));
  const auto report_of = [&](const char* name, const char* prefill_ms) {
    const std::string path = folder_ + name;
    const std::string engine =
        std::string(R"({"timing_model":{"type":"fixed","decode_ms":2,"prefill_ms":)") + prefill_ms +
        "}}";
    EXPECT_EQ(Run({"replay", trace, "--trace-block-size", "64", "--extra-engine-args", engine,
                   "--capture-per-request", "--report-json", path})
                  .code,
              0);
    return path;
  };
  const std::string a = report_of("a.json", "100");
  const std::string again = report_of("again.json", "100");
  const std::string slower = report_of("slower.json", "101");
  const Finished equal = Run({"compare", a, again});
  EXPECT_EQ(equal.code, 0) << equal.out;
  EXPECT_TRUE(equal.out.starts_with("All 1 requests are equal.\nOK: all ")) << equal.out;
  const Finished different = Run({"compare", a, slower});
  EXPECT_EQ(different.code, 1);
  EXPECT_NE(different.out.find("+1.000 %\n"), std::string::npos) << different.out;
  EXPECT_NE(different.out.find("first_token_ms: 100.0 -> 101.0"), std::string::npos);
  EXPECT_NE(different.out.find("prefill_ms: 100.0 -> 101.0"), std::string::npos) << different.out;
  EXPECT_EQ(Run({"compare", a, slower, "--tolerance", "1%"}).code, 0);
  EXPECT_EQ(Run({"compare", a, slower, "--tolerance", "0.01"}).code, 0);
  EXPECT_EQ(Run({"compare", a, slower, "--tolerance", "0.001"}).code, 1);
  EXPECT_EQ(Run({"compare", a, slower, "--metric", "itl_ms", "--metric", "count"}).code, 0);
  const Finished json = Run({"compare", a, slower, "--json"});
  EXPECT_EQ(json.code, 1);
  const auto parsed = ParseJson(json.out, "json");
  ASSERT_TRUE(parsed) << parsed.error().Text();
  EXPECT_EQ(*parsed->Find("within"), Json(false));
}

TEST_F(CommandLine, ViewsOfARunLeaveItsReportAsItIs) {
  const std::vector<std::string> run = {"replay",
                                        "--input-tokens",
                                        "300",
                                        "--output-tokens",
                                        "20",
                                        "--request-count",
                                        "60",
                                        "--request-rate",
                                        "100",
                                        "--num-workers",
                                        "2",
                                        "--extra-engine-args",
                                        R"({"backend":"sglang","dp_size":2})",
                                        "--report-json"};
  const auto report_of = [&](const char* name, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = run;
    arguments.push_back(folder_ + name);
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished finished = Run(arguments);
    EXPECT_EQ(finished.code, 0) << finished.error;
    EXPECT_EQ(finished.error, "");
    Json report = ParseJson(Content(folder_ + name), name).value_or(Json());
    std::erase_if(report.object(), [](const Json::Member& member) {
      return member.first == "runtime" || member.first == "wall_time_ms" ||
             member.first.starts_with("processed_");
    });
    return report;
  };
  const Json plain = report_of("plain.json", {});
  const Json viewed = report_of("viewed.json", {"--report-html", folder_ + "deep/page.html",
                                                "--trace-out", folder_ + "deep/trace.json"});
  EXPECT_EQ(DumpJson(plain), DumpJson(viewed));
  EXPECT_TRUE(Content(folder_ + "deep/page.html").starts_with("<!DOCTYPE html>"));
  // The same passes and requests when every pass is simulated on its own.
  report_of("single.json", {"--pass-by-pass", "--trace-out", folder_ + "single_trace.json"});
  report_of("fast.json", {"--trace-out", folder_ + "fast_trace.json"});
  const std::string trace = Content(folder_ + "fast_trace.json");
  EXPECT_TRUE(trace == Content(folder_ + "single_trace.json"));
  const auto parsed = ParseJson(trace, "trace");
  ASSERT_TRUE(parsed) << parsed.error().Text();
  double tokens = 0.0;
  for (const Json& event : parsed->Find("traceEvents")->array()) {
    const Json* const category = event.Find("cat");
    if (category != nullptr && category->string() == "pass") {
      tokens += event.Find("args")->Find("requests_with_tokens")->number();
    }
  }
  EXPECT_EQ(tokens, plain.Find("total_output_tokens")->number());
  EXPECT_EQ(Run({"replay", "--report-html", folder_ + "x", "--trace-out", folder_ + "x"}).code, 2);
}

TEST_F(CommandLine, CompareExitsWith2WhenItCannotCompare) {
  const std::string a = Write("a.json", R"({"n":1})");
  const std::string broken = Write("broken.json", "{");
  EXPECT_EQ(Run({"compare", a}).code, 2);
  EXPECT_EQ(Run({"compare", a, folder_ + "none.json"}).code, 2);
  EXPECT_EQ(Run({"compare", a, broken}).code, 2);
  EXPECT_EQ(Run({"compare", a, Write("b.json", R"({"m":1})")}).code, 2);
  for (const char* tolerance : {"-1", "x", "1%%", "nan", "inf", ""}) {
    EXPECT_EQ(Run({"compare", a, a, "--tolerance", tolerance}).code, *tolerance == '\0' ? 0 : 2)
        << tolerance;
  }
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
