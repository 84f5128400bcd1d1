// SPDX-License-Identifier: Apache-2.0
// Where results go, and that they never overwrite an input or each other.
#include "cli/report_paths.h"

#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "scenario/replay_flags.h"
#include "workload/spec.h"

namespace dynosim::cli {
namespace {

std::tm Local() {
  std::tm local = {};
  local.tm_year = 126;
  local.tm_mon = 0;
  local.tm_mday = 9;
  local.tm_hour = 7;
  local.tm_min = 5;
  local.tm_sec = 3;
  return local;
}

class ReportPaths : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "report_paths_test/";
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST_F(ReportPaths, TheDefaultNameHoldsTheLocalTime) {
  EXPECT_EQ(ReportPath("", Local()), "./dynamo_replay_report_20260109_070503.json");
}

TEST_F(ReportPaths, AFolderGetsTheDefaultName) {
  EXPECT_EQ(ReportPath(folder_, Local()), folder_ + "dynamo_replay_report_20260109_070503.json");
  EXPECT_EQ(ReportPath(folder_ + "new.json", Local()), folder_ + "new.json");
}

TEST_F(ReportPaths, ClashesAreErrors) {
  const std::string trace = folder_ + "trace.jsonl";
  std::ofstream(trace) << "{}\n";
  const auto error = [&](auto change) {
    scenario::Replay replay;
    replay.report_json = folder_ + "report.json";
    replay.scenario.workload.trace = workload::TraceSpec{.files = {trace}};
    change(replay);
    const auto resolved = ResolveOutputs(replay, Local());
    return resolved ? "fine" : resolved.error().Text();
  };
  EXPECT_EQ(error([](scenario::Replay&) {}), "fine");
  EXPECT_EQ(error([&](scenario::Replay& r) {
              r.report_json = folder_ + "../report_paths_test/trace.jsonl";
            }),
            "--report-json: would overwrite " + trace + ", which this run reads");
  EXPECT_EQ(error([&](scenario::Replay& r) { r.report_jsonl = folder_; }),
            "--report-jsonl: " + folder_ + " is a directory");
  EXPECT_EQ(error([&](scenario::Replay& r) { r.report_jsonl = folder_ + "./report.json"; }),
            "--report-jsonl: and --report-json name the same file");
  EXPECT_EQ(error([&](scenario::Replay& r) {
              r.report_jsonl = "/dev/null";
              r.scenario.telemetry.jsonl_path = "/dev/null";
            }),
            "fine");
}

}  // namespace
}  // namespace dynosim::cli
