// SPDX-License-Identifier: Apache-2.0
// The page's data: columns, thinning, texts that could end the script, and a file that needs
// nothing from outside. tests/browser/ looks at the page itself.
#include "report/html_page.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "report/json_report.h"
#include "report/json_writer.h"
#include "report/sample_outcome.h"
#include "report/summary.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "workload/request.h"

namespace dynosim::report {
namespace {

std::string HostileName(std::uint32_t session) { return "</script>" + std::to_string(session); }

Json DataOf(const sim::Outcome& outcome, const scenario::Scenario& scenario = {},
            const PageLimits& limits = {}) {
  const Summary summary = Summarize(outcome, scenario, {});
  const SessionNames names = HostileName;
  const ReportParts parts{
      .summary = summary, .outcome = outcome, .scenario = scenario, .session_names = names};
  const std::string text = TextOf(
      {}, [&](JsonWriter& out) { WritePageData(out, {.title = "t", .run = &parts}, limits); });
  const auto parsed = ParseJson(text, "data");
  EXPECT_TRUE(parsed) << parsed.error().Text();
  return parsed.value_or(Json());
}

const Json& At(const Json& json, const std::vector<std::string>& path) {
  const Json* at = &json;
  for (const std::string& key : path) {
    at = at->Find(key);
  }
  return *at;
}

template <class T>
std::vector<T> Values(const Json& column) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int have = 0;
  for (const char c : column.Find("base64")->string()) {
    if (c == '=') {
      break;
    }
    bits = (bits << 6) | static_cast<std::uint32_t>(kDigits.find(c));
    have += 6;
    if (have >= 8) {
      have -= 8;
      bytes += static_cast<char>((bits >> have) & 0xFFU);
    }
  }
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

sim::Outcome Requests(std::uint32_t count) {
  sim::Outcome outcome;
  for (std::uint32_t i = 0; i < count; ++i) {
    outcome.records.push_back(Completed(i, i, {i + 2.0, i + 2.5}));
  }
  outcome.end_ms = count + 2.0;
  return outcome;
}

TEST(HtmlPage, ColumnsHoldTheStampsBitForBit) {
  sim::Outcome outcome = Requests(2);
  outcome.records[1].arrival_ms = 0.1;
  outcome.records[1].session = 7;
  outcome.records.push_back(NotServed(2, 1.0, workload::TerminalStatus::kRejected, 3.0));
  const Json data = DataOf(outcome);
  const Json& columns = At(data, {"run", "requests", "columns"});
  EXPECT_EQ(Values<double>(*columns.Find("arrival")), (std::vector{0.0, 0.1, 1.0}));
  EXPECT_TRUE(std::isnan(Values<double>(*columns.Find("first"))[2]));
  EXPECT_EQ(Values<std::uint8_t>(*columns.Find("status")), (std::vector<std::uint8_t>{0, 0, 1}));
  EXPECT_EQ(Values<std::uint32_t>(*columns.Find("input")),
            (std::vector<std::uint32_t>{100, 100, 5000}));
  EXPECT_EQ(columns.Find("held"), nullptr);
  EXPECT_EQ(At(data, {"run", "sessions", "7"}).string(), "</script>7");
}

TEST(HtmlPage, RequestsBeyondTheLimitAreThinnedEvenlyAndCounted) {
  sim::Outcome outcome = Requests(10);
  outcome.records[9].terminal = false;
  const Json data = DataOf(outcome, {}, {.requests = 4});
  const Json& requests = At(data, {"run", "requests"});
  EXPECT_EQ(requests.Find("step")->number(), 3.0);
  EXPECT_EQ(requests.Find("rows")->number(), 3.0);
  EXPECT_EQ(Values<std::uint32_t>(At(requests, {"columns", "id"})),
            (std::vector<std::uint32_t>{0, 3, 6}));
  EXPECT_EQ(At(data, {"run", "unfinished"}).number(), 1.0);
}

TEST(HtmlPage, NeighbouringPassesOfAWorkerAreMerged) {
  sim::Outcome outcome = Requests(1);
  for (int i = 0; i < 3; ++i) {
    outcome.passes.push_back({.worker = 0,
                              .start_ms = 10.0 * i,
                              .end_ms = 10.0 * i + 4.0,
                              .prefill_tokens = 5,
                              .requests = 2});
  }
  outcome.passes.push_back({.worker = 1, .start_ms = 1.0, .end_ms = 2.0, .requests = 1});
  const Json data = DataOf(outcome, {}, {.passes = 2});
  const Json& passes = At(data, {"run", "passes"});
  EXPECT_EQ(passes.Find("merged")->number(), 2.0);
  EXPECT_EQ(passes.Find("total")->number(), 4.0);
  const Json& columns = *passes.Find("columns");
  EXPECT_EQ(Values<double>(*columns.Find("start")), (std::vector{0.0, 20.0, 1.0}));
  EXPECT_EQ(Values<float>(*columns.Find("duration")), (std::vector{14.0F, 4.0F, 1.0F}));
  EXPECT_EQ(Values<float>(*columns.Find("busy")), (std::vector{8.0F, 4.0F, 1.0F}));
  EXPECT_EQ(Values<std::uint32_t>(*columns.Find("prefill")),
            (std::vector<std::uint32_t>{10, 5, 0}));
  EXPECT_EQ(Values<std::uint32_t>(*columns.Find("requests")),
            (std::vector<std::uint32_t>{4, 2, 1}));
  EXPECT_EQ(Values<std::uint32_t>(*columns.Find("passes")), (std::vector<std::uint32_t>{2, 1, 1}));
}

TEST(HtmlPage, GaugesAreByRankAndTime) {
  sim::Outcome outcome = Requests(1);
  for (int i = 0; i < 2; ++i) {
    sim::TelemetrySample sample;
    sample.sampled_at_ms = i;
    sample.decode_schedulers = {{.worker = 0, .total_blocks = 9, .waiting_requests = 3},
                                {.worker = 0, .dp_rank = 1, .total_blocks = 9}};
    sample.decode_schedulers[1].running_requests = static_cast<std::uint64_t>(i);
    outcome.telemetry.push_back(sample);
  }
  const Json data = DataOf(outcome);
  const Json& telemetry = At(data, {"run", "telemetry"});
  EXPECT_EQ(telemetry.Find("ranks")->array()[1].Find("name")->string(), "worker 0 rank 1");
  EXPECT_EQ(Values<std::uint32_t>(At(telemetry, {"gauges", "waiting"})),
            (std::vector<std::uint32_t>{3, 3, 0, 0}));
  EXPECT_EQ(Values<std::uint32_t>(At(telemetry, {"gauges", "running"})),
            (std::vector<std::uint32_t>{0, 0, 0, 1}));
}

TEST(HtmlPage, ARunWithoutRequestsHasEmptyColumns) {
  const Json data = DataOf({});
  EXPECT_EQ(At(data, {"run", "requests", "rows"}).number(), 0.0);
  EXPECT_EQ(At(data, {"run", "requests", "columns", "arrival", "base64"}).string(), "");
  EXPECT_TRUE(At(data, {"run", "telemetry"}).is_null());
}

TEST(HtmlPage, TheFileIsSelfContainedAndNoNameEndsItsScript) {
  const sim::Outcome outcome = Requests(1);
  const SearchView search{.x_name = "x",
                          .y_name = "y",
                          .points = {{.name = "a", .on_front = true, .document = "</script><b>"}}};
  const std::string path = testing::TempDir() + "html_page_test.html";
  const auto written = WriteHtmlPage(path, {.title = "T", .search = &search});
  ASSERT_TRUE(written) << written.error().Text();
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove(path);
  EXPECT_TRUE(text.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(text.ends_with("</html>\n"));
  EXPECT_NE(text.find("\\u003c/script>\\u003cb>"), std::string::npos);
  EXPECT_NE(text.find("Copyright (c) 2022 Leon Sorokin"), std::string::npos);
  for (const std::string_view outside : {"src=\"", "<link rel=\"stylesheet", "@import", "@DATA@"}) {
    EXPECT_EQ(text.find(outside), std::string::npos) << outside;
  }
}

}  // namespace
}  // namespace dynosim::report
