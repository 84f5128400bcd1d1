// SPDX-License-Identifier: Apache-2.0
// The trace of a run: slices of requests with their phases, lanes, passes, counters.
#include "report/chrome_trace.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "report/json_writer.h"
#include "report/sample_outcome.h"
#include "report/texts_for_test.h"
#include "sim/outcome.h"
#include "workload/request.h"

namespace dynosim::report {
namespace {

Json Trace(const sim::Outcome& outcome) {
  const std::string text =
      TextOf({}, [&](JsonWriter& out) { WriteChromeTrace(out, outcome, SessionName); });
  const auto parsed = ParseJson(text, "trace");
  EXPECT_TRUE(parsed) << parsed.error().Text();
  return parsed.value_or(Json());
}

// "name@thread from+duration" of the slices of a category, in file order.
std::vector<std::string> Slices(const Json& trace, std::string_view category) {
  std::vector<std::string> out;
  for (const Json& event : trace.Find("traceEvents")->array()) {
    if (const Json* const cat = event.Find("cat"); cat != nullptr && cat->string() == category) {
      out.push_back(event.Find("name")->string() + "@" + DumpJson(*event.Find("tid")) + " " +
                    DumpJson(*event.Find("ts")) + "+" + DumpJson(*event.Find("dur")));
    }
  }
  return out;
}

using Strings = std::vector<std::string>;

TEST(ChromeTrace, ARequestIsASliceWithItsPhasesInside) {
  sim::Outcome outcome;
  outcome.records = {Completed(0, 1.0, {5.0, 8.0})};
  outcome.records[0].first_admit_ms = 2.0;
  const Json trace = Trace(outcome);
  EXPECT_EQ(Slices(trace, "request"), Strings{"request 1@1 1000.0+7000.0"});
  EXPECT_EQ(Slices(trace, "phase"), (Strings{"queue@1 1000.0+1000.0", "prefill@1 2000.0+3000.0",
                                             "decode@1 5000.0+3000.0"}));
}

TEST(ChromeTrace, RequestsInFlightTogetherHaveLanesOfTheirOwn) {
  sim::Outcome outcome;
  outcome.records = {Completed(0, 0.0, {4.0}), Completed(1, 1.0, {2.0}), Completed(2, 2.0, {9.0}),
                     Completed(3, 3.0, {5.0}), Completed(4, 4.0, {5.0})};
  EXPECT_EQ(RequestLanes(outcome), (std::vector<std::uint32_t>{0, 1, 1, 2, 0}));
}

TEST(ChromeTrace, UnfinishedRequestsAreLeftOutAndRejectedOnesQueueOnly) {
  sim::Outcome outcome;
  outcome.records = {Completed(0, 0.0, {1.0}),
                     NotServed(1, 0.0, workload::TerminalStatus::kRejected, 3.0)};
  outcome.records[0].terminal = false;
  const Json trace = Trace(outcome);
  EXPECT_EQ(Slices(trace, "request"), Strings{"request 2@1 0.0+3000.0"});
  EXPECT_EQ(Slices(trace, "phase"), Strings{"queue@1 0.0+3000.0"});
}

TEST(ChromeTrace, APassIsASliceOfItsWorker) {
  sim::Outcome outcome;
  outcome.passes = {
      {.pool = sim::Pool::kPrefill,
       .worker = 0,
       .start_ms = 0.0,
       .end_ms = 2.0,
       .prefill_tokens = 9},
      {.pool = sim::Pool::kDecode, .worker = 1, .start_ms = 2.0, .end_ms = 3.0, .requests = 4},
      {.pool = sim::Pool::kDecode,
       .worker = 1,
       .start_ms = 3.0,
       .end_ms = 5.0,
       .prefill_tokens = 1,
       .requests = 1}};
  const Json trace = Trace(outcome);
  EXPECT_EQ(Slices(trace, "pass"), (Strings{"prefill@1 0.0+2000.0", "decode@1 2000.0+1000.0",
                                            "prefill and decode@1 3000.0+2000.0"}));
  std::string names;
  for (const Json& event : trace.Find("traceEvents")->array()) {
    if (event.Find("name")->string() == "process_name") {
      names += event.Find("args")->Find("name")->string() + ";";
    }
  }
  EXPECT_EQ(names, "requests;prefill worker 0;decode worker 1;");
}

TEST(ChromeTrace, SamplesOfARankAreCounters) {
  sim::Outcome outcome;
  outcome.passes = {{.worker = 0, .start_ms = 0.0, .end_ms = 1.0}};
  sim::TelemetrySample sample;
  sample.sampled_at_ms = 2.0;
  sample.decode_schedulers = {
      {.worker = 0, .dp_rank = 1, .active_blocks = 7, .running_requests = 3}, {.worker = 9}};
  outcome.telemetry = {sample};
  std::string counters;
  const Json trace = Trace(outcome);
  for (const Json& event : trace.Find("traceEvents")->array()) {
    if (event.Find("ph")->string() == "C") {
      counters += event.Find("name")->string() + DumpJson(*event.Find("args")) + ";";
    }
  }
  EXPECT_EQ(counters,
            R"(rank 1 requests{"running":3,"waiting":0};rank 1 KV blocks{"active":7,"cached":0};)");
}

TEST(ChromeTrace, ARunWithoutRequestsIsAValidTrace) {
  EXPECT_EQ(Trace({}).Find("traceEvents")->array().size(), 1U);
}

}  // namespace
}  // namespace dynosim::report
