// SPDX-License-Identifier: Apache-2.0
// The report file: strict JSON, sorted, reproducible, written whole.
#include "report/json_report.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "report/json_writer.h"
#include "report/per_request.h"
#include "report/sample_outcome.h"
#include "report/summary.h"
#include "report/texts_for_test.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "workload/request.h"

namespace dynosim::report {
namespace {

constexpr JsonStyle kFileStyle = {.indent = 2, .sort_keys = true};

scenario::Scenario CapturingScenario() {
  scenario::Scenario scenario;
  scenario.workload.trace.emplace().files = {"trace.jsonl"};
  scenario.capture_per_request = true;
  scenario.telemetry.capture = true;
  scenario.telemetry.sample_interval_ms = 20.0;
  scenario.goodput.ttft_ms = 100.0;
  return scenario;
}

sim::Outcome MixedOutcome() {
  sim::Outcome outcome;
  outcome.records = {Completed(0, 0.0, {10.0, 12.0, 16.0}), Completed(1, 5.0, {}),
                     NotServed(2, 6.0, workload::TerminalStatus::kRejected, 20.0),
                     Completed(3, 7.0, {30.0})};
  outcome.records[3].terminal = false;
  outcome.records[0].session = 0;
  outcome.records[0].turn = 0;
  outcome.details.resize(outcome.records.size());
  outcome.details[2].rejection_reason = "say \"no\"\n";
  outcome.details[0].routing.resize(1);
  outcome.details[0].admissions.resize(2);
  outcome.first_rejection_reason = outcome.details[2].rejection_reason;
  outcome.gaps = {{.gap_ms = 2.0, .weight = 1}, {.gap_ms = 4.0, .weight = 1}};
  outcome.telemetry.resize(2);
  outcome.telemetry[0].decode_schedulers.resize(1);
  return outcome;
}

std::string ReportText(const sim::Outcome& outcome, const scenario::Scenario& scenario,
                       double wall_time_ms, JsonStyle style = kFileStyle) {
  const Summary summary = Summarize(outcome, scenario, {.wall_time_ms = wall_time_ms});
  const SessionNames names = [](std::uint32_t) { return std::string("na\u00EFve"); };
  return TextOf(style, [&](JsonWriter& out) {
    WriteReport(
        out,
        {.summary = summary, .outcome = outcome, .scenario = scenario, .session_names = names});
  });
}

// Keys of every object are sorted, except that `ends` come last.
void ExpectSorted(const Json& json) {
  if (json.is_array()) {
    for (const Json& item : json.array()) {
      ExpectSorted(item);
    }
  }
  if (!json.is_object()) {
    return;
  }
  std::vector<std::string> keys;
  for (const Json::Member& member : json.object()) {
    keys.push_back(member.first);
    ExpectSorted(member.second);
  }
  if (!keys.empty() && (keys.back() == "runtime" || keys.back() == "rejection_reason")) {
    keys.pop_back();
  }
  EXPECT_TRUE(std::ranges::is_sorted(keys)) << DumpJson(json);
}

TEST(Report, ReadsBackAsStrictJsonWithEveryPart) {
  const Json report = Parsed(ReportText(MixedOutcome(), CapturingScenario(), 4.0));
  EXPECT_EQ(report.Find("num_requests")->number(), 4.0);
  EXPECT_EQ(report.Find("rejected_requests")->number(), 1.0);
  EXPECT_EQ(report.Find("per_request")->array().size(), 3U);
  EXPECT_EQ(report.Find("telemetry")->Find("sample_interval_ms")->number(), 20.0);
  EXPECT_EQ(report.Find("telemetry")->Find("samples")->array().size(), 2U);
  EXPECT_EQ(DumpJson(*report.Find("coverage")),
            R"({"capture_per_request":true,"capture_planner_details":false,)"
            R"("per_request_records":3})");
  EXPECT_NE(report.Find("configuration")->Find("extra_engine_args"), nullptr);
}

TEST(Report, KeysAreSortedAndRuntimeIsLast) {
  const Json report = Parsed(ReportText(MixedOutcome(), CapturingScenario(), 4.0));
  ExpectSorted(report);
  EXPECT_EQ(report.object().back().first, "runtime");
  EXPECT_EQ(report.Find("per_request")->array()[2].object().back().first, "rejection_reason");
}

TEST(Report, IsIndentedByTwoAndEndsWithALineFeed) {
  const std::string text = ReportText(MixedOutcome(), CapturingScenario(), 4.0);
  EXPECT_TRUE(text.starts_with("{\n  \"committed_prefill_tokens\": 0,\n"));
  EXPECT_TRUE(text.ends_with("\n  }\n}\n"));
  const Json report = Parsed(text);
  EXPECT_EQ(text, DumpJson(report, {.indent = 2, .sort_keys = false}) + "\n");
}

TEST(Report, PartsThatWereNotCapturedAreAbsent) {
  scenario::Scenario scenario = CapturingScenario();
  scenario.capture_per_request = false;
  scenario.telemetry = {};
  const Json report = Parsed(ReportText(MixedOutcome(), scenario, 4.0));
  EXPECT_EQ(report.Find("per_request"), nullptr);
  EXPECT_EQ(report.Find("telemetry"), nullptr);
  EXPECT_EQ(report.Find("coverage")->Find("per_request_records")->number(), 0.0);
  EXPECT_FALSE(report.Find("coverage")->Find("capture_per_request")->boolean());
}

TEST(Report, TwoRunsDifferInWallClockFieldsOnly) {
  Json first = Parsed(ReportText(MixedOutcome(), CapturingScenario(), 4.0));
  Json second = Parsed(ReportText(MixedOutcome(), CapturingScenario(), 5.0));
  EXPECT_NE(DumpJson(first), DumpJson(second));
  for (Json* report : {&first, &second}) {
    std::erase_if(report->object(), [](const Json::Member& member) {
      return member.first == "runtime" || member.first == "wall_time_ms" ||
             member.first == "processed_tokens_per_s" ||
             member.first == "processed_output_tokens_per_s";
    });
  }
  EXPECT_EQ(DumpJson(first), DumpJson(second));
}

TEST(Report, NumbersThatAreNotFiniteBecomeNull) {
  sim::Outcome outcome = MixedOutcome();
  outcome.decode_worker_seconds = std::numeric_limits<double>::infinity();
  outcome.telemetry[0].avg_isl = std::numeric_limits<double>::quiet_NaN();
  outcome.gaps[0].gap_ms = std::numeric_limits<double>::denorm_min();  // its rate overflows
  const Json report = Parsed(ReportText(outcome, CapturingScenario(), 4.0));
  EXPECT_TRUE(report.Find("decode_worker_seconds")->is_null());
  EXPECT_TRUE(report.Find("max_output_token_throughput_per_user")->is_null());
}

TEST(Report, TheFileIsTheTextAndParentsAreMade) {
  const sim::Outcome outcome = MixedOutcome();
  const scenario::Scenario scenario = CapturingScenario();
  const auto folder = std::filesystem::path(::testing::TempDir()) / "json_report_test" / "deep";
  std::filesystem::remove_all(folder);
  const std::string path = (folder / "report.json").string();
  const Summary summary = Summarize(outcome, scenario, {.wall_time_ms = 4.0});
  const SessionNames names = [](std::uint32_t) { return std::string("na\u00EFve"); };
  const auto written = WriteJsonReport(
      path, {.summary = summary, .outcome = outcome, .scenario = scenario, .session_names = names});
  ASSERT_TRUE(written) << written.error().Text();
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(text, ReportText(outcome, scenario, 4.0));
}

TEST(Report, AFolderInTheWayIsAnErrorThatNamesIt) {
  const std::string folder = ::testing::TempDir();
  const Summary summary;
  const SessionNames names;
  const auto written = WriteJsonReport(
      folder, {.summary = summary, .outcome = {}, .scenario = {}, .session_names = names});
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().Text().find(folder.substr(0, 4)), std::string::npos);
}

TEST(Report, ManyRowsStreamThroughOneSmallBuffer) {
  sim::Outcome outcome;
  outcome.records.assign(20'000, Completed(0, 0.0, {10.0, 12.0}));
  scenario::Scenario scenario;
  scenario.capture_per_request = true;
  const Summary summary = Summarize(outcome, scenario, {});
  const SessionNames names;
  std::size_t largest = 0;
  std::size_t total = 0;
  JsonWriter out(kFileStyle, [&](std::string_view part) {
    largest = std::max(largest, part.size());
    total += part.size();
  });
  WriteReport(
      out, {.summary = summary, .outcome = outcome, .scenario = scenario, .session_names = names});
  out.Flush();
  EXPECT_GT(total, 10'000'000U);
  EXPECT_LT(largest, 200'000U);
}

}  // namespace
}  // namespace dynosim::report
