// SPDX-License-Identifier: Apache-2.0
// The table as text, character by character.
#include "report/table.h"

#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "report/sample_outcome.h"
#include "report/summary.h"
#include "sim/outcome.h"

namespace dynosim::report {
namespace {

Summary ThreeServed() {
  sim::Outcome outcome;
  outcome.records = {Completed(0, 0.0, {10.0, 12.0, 16.0}), Completed(1, 5.0, {20.0}),
                     Completed(2, 6.0, {1234.5, 1240.5})};
  outcome.records[1].reused_tokens_max = 75;
  outcome.records[1].reused_tokens_first = 30;
  outcome.gaps = {
      {.gap_ms = 2.0, .weight = 1}, {.gap_ms = 4.0, .weight = 1}, {.gap_ms = 6.0, .weight = 1}};
  return Summarize(outcome, {}, {.wall_time_ms = 1.25});
}

std::vector<std::string> Lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

// Columns on a screen: bytes that do not continue a UTF-8 character.
std::size_t ScreenWidth(const std::string& line) {
  std::size_t width = 0;
  for (const char c : line) {
    width += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1U : 0U;
  }
  return width;
}

TEST(Table, IsTheGoldenText) {
  EXPECT_EQ(RenderTable(ThreeServed()), R"(dynosim | LLM Metrics
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━┳━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━┓
┃ Metric                                             ┃    avg ┃    min ┃      max ┃      p99 ┃      p90 ┃      p75 ┃    std ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━╇━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━┩
┃ Time to First Token (ms)                           ┃ 417.83 ┃  10.00 ┃ 1,228.50 ┃ 1,228.50 ┃ 1,228.50 ┃ 1,228.50 ┃ 573.23 ┃
┃ Time to Second Token (ms)                          ┃   4.00 ┃   2.00 ┃     6.00 ┃     6.00 ┃     6.00 ┃     6.00 ┃   2.00 ┃
┃ Request Latency (ms)                               ┃ 421.83 ┃  15.00 ┃ 1,234.50 ┃ 1,234.50 ┃ 1,234.50 ┃ 1,234.50 ┃ 574.64 ┃
┃ Inter Token Latency (ms)                           ┃   4.00 ┃   2.00 ┃     6.00 ┃     6.00 ┃     6.00 ┃     6.00 ┃   1.63 ┃
┃ Output Token Throughput Per User (tokens/sec/user) ┃ 305.56 ┃ 166.67 ┃   500.00 ┃   500.00 ┃   500.00 ┃   500.00 ┃ 141.64 ┃
┃ Output Token Throughput (tokens/sec)               ┃   4.84 ┃    N/A ┃      N/A ┃      N/A ┃      N/A ┃      N/A ┃    N/A ┃
┃ Request Throughput (requests/sec)                  ┃   2.42 ┃    N/A ┃      N/A ┃      N/A ┃      N/A ┃      N/A ┃    N/A ┃
┃ Request Count (requests)                           ┃   3.00 ┃    N/A ┃      N/A ┃      N/A ┃      N/A ┃      N/A ┃    N/A ┃
└━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┴━━━━━━━━┴━━━━━━━━┴━━━━━━━━━━┴━━━━━━━━━━┴━━━━━━━━━━┴━━━━━━━━━━┴━━━━━━━━┘
First Admission Prefix Cache Reused Ratio: 0.10
Prefix Cache Reused Ratio: 0.25
Wall Time (ms): 1.25)");
}

TEST(Table, RejectedRequestsAndTheirFirstReasonShowOnlyWhenThereAreSome) {
  Summary summary = ThreeServed();
  EXPECT_EQ(RenderTable(summary).find("Reject"), std::string::npos);
  summary.rejected_requests = 1234;
  summary.first_rejection_reason = "prompt needs 80 blocks, the pool has 8";
  const std::string text = RenderTable(summary);
  EXPECT_NE(text.find("Rejected Requests (requests)"), std::string::npos);
  EXPECT_NE(text.find(" 1,234.00 "), std::string::npos);
  EXPECT_NE(text.find("\nFirst Rejection Reason: prompt needs 80 blocks, the pool has 8\n"),
            std::string::npos);
}

TEST(Table, UnfinishedRequestsShowOnlyWhenThereAreSome) {
  Summary summary = ThreeServed();
  summary.rejected_requests = 2;
  summary.num_requests = 5;
  EXPECT_EQ(RenderTable(summary).find("Unfinished"), std::string::npos);
  summary.num_requests = 9;
  const std::string text = RenderTable(summary);
  const auto row = text.find("Unfinished Requests (requests)");
  ASSERT_NE(row, std::string::npos);
  EXPECT_LT(text.find("   4.00 ", row), text.find('\n', row));
}

TEST(Table, AllLinesOfTheBoxAreEquallyWide) {
  Summary summary = ThreeServed();
  summary.rejected_requests = 3;
  summary.ttft_ms.max = 123456789.125;
  summary.output_throughput_tok_s = 98765432.1;
  const auto lines = Lines(RenderTable(summary));
  ASSERT_GT(lines.size(), 14U);
  for (std::size_t i = 2; i <= 13; ++i) {
    EXPECT_EQ(ScreenWidth(lines[i]), ScreenWidth(lines[1])) << lines[i];
  }
  EXPECT_NE(RenderTable(summary).find(" 123,456,789.12 "), std::string::npos);
}

TEST(Table, TheFirstAdmissionRatioComesFirst) {
  const std::string text = RenderTable(ThreeServed());
  const auto first = text.find("First Admission Prefix Cache Reused Ratio: 0.10");
  const auto overall = text.find("\nPrefix Cache Reused Ratio: 0.25");
  ASSERT_NE(first, std::string::npos);
  ASSERT_NE(overall, std::string::npos);
  EXPECT_LT(first, overall);
  EXPECT_FALSE(text.ends_with('\n'));
}

}  // namespace
}  // namespace dynosim::report
