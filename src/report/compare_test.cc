// SPDX-License-Identifier: Apache-2.0
// Comparison of reports: the verdict, the first diverging request, and AIPerf's names and units.
#include "report/compare.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "report/aiperf.h"
#include "report/texts_for_test.h"

namespace dynosim::report {
namespace {

Comparison Compared(std::string_view a, std::string_view b, const CompareOptions& options = {}) {
  const auto comparison = CompareReports(Parsed(a), Parsed(b), options);
  EXPECT_TRUE(comparison) << comparison.error().Text();
  return comparison.value_or(Comparison{});
}

std::string Text(std::string_view a, std::string_view b, const CompareOptions& options = {},
                 bool all = false) {
  return ComparisonText(Compared(a, b, options), options, all);
}

constexpr std::string_view kReport = R"({"completed_requests":2,"mean_ttft_ms":100.0,
  "mean_tpot_ms":5.0,"wall_time_ms":3.0,"kv_eviction_policy":"lru"})";

TEST(Compare, TwoEqualReportsHaveNoDifference) {
  const Comparison comparison = Compared(kReport, kReport);
  EXPECT_TRUE(comparison.within);
  EXPECT_EQ(comparison.metrics.size(), 3U);
  EXPECT_EQ(Text(kReport, kReport), "OK: all 3 metrics are equal.\n");
}

TEST(Compare, MachineTimeIsNoDifference) {
  EXPECT_TRUE(Compared(R"({"a":1.0,"wall_time_ms":3.0,"processed_tokens_per_s":9.0})",
                       R"({"a":1.0,"wall_time_ms":4.0,"processed_tokens_per_s":8.0})")
                  .within);
}

TEST(Compare, AChangeOfOnePercentIsFound) {
  const std::string_view b = R"({"completed_requests":2,"mean_ttft_ms":101.0,"mean_tpot_ms":5.0})";
  const Comparison comparison = Compared(kReport, b);
  EXPECT_FALSE(comparison.within);
  EXPECT_EQ(comparison.metrics[1].name, "mean_ttft_ms");
  EXPECT_DOUBLE_EQ(comparison.metrics[1].relative, 0.01);
  EXPECT_FALSE(comparison.metrics[1].within);
  EXPECT_TRUE(comparison.metrics[0].within);
  EXPECT_TRUE(comparison.metrics[2].within);
  EXPECT_EQ(Text(kReport, b),
            "  metric                             A                 B   B against A\n"
            "  mean_ttft_ms                     100               101      +1.000 %\n"
            "DIFFERENT: 1 of 3 metrics are not equal.\n");
}

TEST(Compare, AToleranceMarksWhatExceedsIt) {
  const std::string_view b = R"({"completed_requests":2,"mean_ttft_ms":103.0,"mean_tpot_ms":4.0})";
  const std::string text = Text(kReport, b, {.tolerance = 0.1});
  EXPECT_NE(text.find("103      +3.000 %\n"), std::string::npos) << text;
  EXPECT_NE(text.find("4     -20.000 %  over\n"), std::string::npos) << text;
}

TEST(Compare, TheToleranceIsRelativeToTheFirstFileAndInclusive) {
  const std::string_view b = R"({"mean_ttft_ms":110.0})";
  EXPECT_TRUE(Compared(kReport, b, {.tolerance = 0.1}).within);
  EXPECT_FALSE(Compared(kReport, b, {.tolerance = 0.0999}).within);
  EXPECT_FALSE(Compared(b, kReport, {.tolerance = 0.09}).within);
  EXPECT_TRUE(Compared(b, kReport, {.tolerance = 0.091}).within);
}

TEST(Compare, AMetricThatWasZeroIsOverEveryTolerance) {
  const Comparison comparison =
      Compared(R"({"rejected_requests":0})", R"({"rejected_requests":1})", {.tolerance = 10.0});
  EXPECT_FALSE(comparison.within);
  EXPECT_EQ(ComparisonJson(comparison, {}).Find("metrics")->array()[0].Find("b")->number(), 1.0);
}

TEST(Compare, RoundOffOfAnotherProgramIsNoDifference) {
  EXPECT_TRUE(Compared(R"({"a":100.0})", R"({"a":100.00000000001})").within);
}

TEST(Compare, OnlyTheWantedMetricsCount) {
  const std::string_view b = R"({"mean_ttft_ms":200.0,"mean_tpot_ms":5.0})";
  EXPECT_TRUE(Compared(kReport, b, {.only = {"tpot"}}).within);
  EXPECT_FALSE(Compared(kReport, b, {.only = {"tpot", "ttft"}}).within);
  const auto none = CompareReports(Parsed(kReport), Parsed(b), {.only = {"speed"}});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().Text(), "--metric: no metric of both files has a name like that");
}

TEST(Compare, FilesWithNothingInCommonCannotBeCompared) {
  const auto none = CompareReports(Parsed(R"({"a":1})"), Parsed(R"({"b":1})"), {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::kUsage);
  EXPECT_FALSE(CompareReports(Parsed("[1]"), Parsed(R"({"b":1})"), {}));
}

TEST(Compare, MetricsOfOneFileAndConfigurationsAreTold) {
  EXPECT_EQ(Text(R"({"a":1,"goodput":2,"configuration":{"x":{"y":1,"z":2}}})",
                 R"({"a":1,"power":3,"configuration":{"x":{"y":1,"z":4},"w":"v"}})"),
            "Configurations differ:\n  x.z: 2 -> 4\n  w: - -> v\nOnly in A: goodput\nOnly in B: "
            "power\nOK: all 1 metrics are equal.\n");
}

std::string Rows(std::string_view rows) {
  return R"({"n":2,"per_request":[)" + std::string(rows) + "]}";
}

TEST(Compare, TheFirstDivergingRequestIsTheOneThatArrivedFirst) {
  const std::string a = Rows(
      R"({"uuid":"1","arrival_time_ms":5.0,"first_token_ms":7.0,"terminal_status":"completed"},)"
      R"({"uuid":"2","arrival_time_ms":1.0,"first_token_ms":2.0,"terminal_status":"completed"},)"
      R"({"uuid":"3","arrival_time_ms":0.0,"first_token_ms":2.0,"terminal_status":"completed"})");
  const std::string b = Rows(
      R"({"uuid":"1","arrival_time_ms":5.0,"first_token_ms":8.0,"terminal_status":"completed"},)"
      R"({"uuid":"2","arrival_time_ms":1.0,"first_token_ms":null,"terminal_status":"rejected"},)"
      R"({"uuid":"3","arrival_time_ms":0.0,"first_token_ms":2.0,"terminal_status":"completed"})");
  EXPECT_EQ(Text(a, b),
            "2 of 3 requests differ. The first: request 2, arrived at 1 ms\n"
            "  first_token_ms: 2.0 -> null\n  terminal_status: completed -> rejected\n"
            "DIFFERENT: metrics are equal, requests are not.\n");
  EXPECT_TRUE(Compared(a, b, {.tolerance = 0.01}).within);
  EXPECT_EQ(Compared(a, a).diverging_requests, 0U);
}

TEST(Compare, ARequestThatOneFileLacksDiverges) {
  const std::string two =
      Rows(R"({"uuid":"1","arrival_time_ms":0},{"uuid":"2","arrival_time_ms":3})");
  const std::string one = Rows(R"({"uuid":"1","arrival_time_ms":0})");
  for (const auto& [a, b] : {std::pair(two, one), std::pair(one, two)}) {
    const Comparison comparison = Compared(a, b);
    ASSERT_TRUE(comparison.first_diverging);
    EXPECT_EQ(comparison.first_diverging->name, "request 2");
    EXPECT_FALSE(comparison.within);
  }
}

TEST(Compare, RowsWithoutACommonNameAreComparedByPlace) {
  const Comparison comparison = Compared(Rows(R"({"uuid":"x","first_token_ms":1})"),
                                         Rows(R"({"uuid":"y","first_token_ms":2})"));
  EXPECT_EQ(comparison.requests, 1U);
  EXPECT_EQ(comparison.diverging_requests, 1U);
}

TEST(Compare, AResultOfTheReferenceHasItsSummaryInAMember) {
  EXPECT_TRUE(Compared(R"({"summary":{"a":1.0},"per_request":null})", R"({"a":1.0})").within);
}

constexpr std::string_view kAiperf = R"({"schema_version":"1.0",
  "time_to_first_token":{"unit":"ms","avg":101.0,"p50":100.0,"p99":150.0,"min":90.0,"std":3.0},
  "inter_token_latency":{"unit":"ms","avg":5.0},
  "request_throughput":{"unit":"requests/sec","avg":4.0},
  "benchmark_duration":{"unit":"sec","avg":2.5},"input_config":{"endpoint":{}}})";

TEST(Compare, AMeasurementHasOurNamesAndUnits) {
  EXPECT_TRUE(IsAiperfExport(Parsed(kAiperf)));
  EXPECT_FALSE(IsAiperfExport(Parsed(kReport)));
  EXPECT_EQ(AiperfMetrics(Parsed(kAiperf)), (NamedValues{{"mean_ttft_ms", 101.0},
                                                         {"median_ttft_ms", 100.0},
                                                         {"p99_ttft_ms", 150.0},
                                                         {"mean_tpot_ms", 5.0},
                                                         {"request_throughput_rps", 4.0},
                                                         {"duration_ms", 2500.0}}));
  const Json old = Parsed(R"({"records":{"request_latency":{"unit":"s","avg":0.5}}})");
  EXPECT_EQ(AiperfMetrics(old), (NamedValues{{"mean_e2e_latency_ms", 500.0}}));
}

TEST(Compare, APredictionIsComparedWithAMeasurement) {
  EXPECT_FALSE(Compared(kReport, kAiperf).within);
  const Comparison comparison = Compared(kReport, kAiperf, {.tolerance = 0.01});
  EXPECT_TRUE(comparison.within);
  EXPECT_EQ(comparison.metrics.size(), 2U);
  EXPECT_EQ(comparison.requests, 0U);
}

TEST(Compare, OddMembersOfAMeasurementAreSkipped) {
  EXPECT_EQ(AiperfMetrics(Parsed(R"({"request_latency":{"unit":7,"avg":"x","p50":1},
                                     "request_count":[1],"request_throughput":{"avg":2}})")),
            (NamedValues{{"median_e2e_latency_ms", 1.0}}));
}

}  // namespace
}  // namespace dynosim::report
