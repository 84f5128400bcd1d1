// SPDX-License-Identifier: Apache-2.0
// The parts of a request's time: what belongs to which part, and exact sums in any order.
#include "report/time_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "report/latency.h"
#include "report/sample_outcome.h"
#include "sim/outcome.h"
#include "workload/request.h"

namespace dynosim::report {
namespace {

sim::RequestRecord Aggregated(double arrival_ms, double admit_ms,
                              const std::vector<double>& tokens) {
  sim::RequestRecord record = Completed(0, arrival_ms, tokens);
  record.first_admit_ms = admit_ms;
  return record;
}

struct Handoff {
  sim::RequestRecord record;
  sim::RequestDetail detail;
};

// Stamps: arrival, prefill admission, source held, transfer start and end, decode admission, first
// and last token.
Handoff Disaggregated(const std::array<double, 8>& stamps) {
  Handoff h{.record = Completed(0, stamps[0], {stamps[6], stamps[7]}), .detail = {}};
  h.record.first_admit_ms = stamps[1];
  h.record.admissions = 2;
  h.record.decode_admissions = 1;
  h.detail.prefill_admit_ms = stamps[1];
  h.detail.source_held_ms = stamps[2];
  h.detail.transfer_start_ms = stamps[3];
  h.detail.transfer_end_ms = stamps[4];
  h.detail.decode_admit_ms = stamps[5];
  return h;
}

std::array<double, 5> List(const std::optional<TimeParts>& parts) {
  EXPECT_TRUE(parts);
  const TimeParts p = parts.value_or(TimeParts{});
  return {p.queue_ms, p.prefill_ms, p.transfer_ms, p.first_decode_wait_ms, p.decode_ms};
}

// All 120 orders of addition give the total, and no part is negative.
void ExpectExact(const std::optional<TimeParts>& parts, std::optional<double> total) {
  std::array<double, 5> list = List(parts);
  std::ranges::sort(list);
  ASSERT_GE(list[0], 0.0);
  do {
    double sum = 0.0;
    for (const double part : list) {
      sum += part;
    }
    ASSERT_EQ(sum, total);
  } while (std::ranges::next_permutation(list).found);
}

TEST(TimeParts, AnAggregatedRequestWaitsPrefillsAndDecodes) {
  const sim::RequestRecord record = Aggregated(10.0, 14.0, {34.0, 39.0, 49.0});
  EXPECT_EQ(List(TtftParts(record, {})), (std::array{4.0, 20.0, 0.0, 0.0, 0.0}));
  EXPECT_EQ(List(EndToEndParts(record, {})), (std::array{4.0, 20.0, 0.0, 0.0, 15.0}));
}

TEST(TimeParts, AHandoffHasATransferAndWaitsForTheDecodeWorkerOnBothSidesOfIt) {
  // Request B of chapter 30, section 11: held at 40, reserved at 43, 12 ms of transfer, admitted at
  // 58, tokens from 63 to 73.
  const Handoff b = Disaggregated({10.0, 20.0, 40.0, 43.0, 55.0, 58.0, 63.0, 73.0});
  EXPECT_EQ(List(TtftParts(b.record, b.detail)), (std::array{10.0, 20.0, 12.0, 6.0, 5.0}));
  EXPECT_EQ(List(EndToEndParts(b.record, b.detail)), (std::array{10.0, 20.0, 12.0, 6.0, 15.0}));
}

TEST(Phases, FollowEachOtherFromArrivalToTheLastToken) {
  const Handoff b = Disaggregated({10.0, 20.0, 40.0, 43.0, 55.0, 58.0, 63.0, 73.0});
  std::string text;
  double at_ms = 10.0;
  for (const PhaseSpan& span : PhasesOf(b.record, b.detail)) {
    EXPECT_EQ(span.from_ms, at_ms);
    at_ms = span.to_ms;
    text += std::string(PhaseName(span.phase)) + " ";
  }
  EXPECT_EQ(at_ms, 73.0);
  EXPECT_EQ(text, "queue prefill first_decode_wait transfer first_decode_wait decode ");
}

TEST(Phases, ARequestThatNeverRanOnlyQueued) {
  const auto spans = PhasesOf(NotServed(0, 3.0, workload::TerminalStatus::kRejected, 4.5), {});
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0].phase, Phase::kQueue);
  EXPECT_EQ(spans[0].to_ms, 4.5);
}

TEST(Phases, ARequestWithoutTokensPrefillsToItsEnd) {
  sim::RequestRecord record = Completed(0, 3.0, {});
  record.first_admit_ms = 5.0;
  record.terminal_ms = 9.0;
  const auto spans = PhasesOf(record, {});
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[1].phase, Phase::kPrefill);
  EXPECT_EQ(spans[1].to_ms, 9.0);
}

TEST(TimeParts, ThereAreNoneWithoutTokensOrWithoutStamps) {
  const sim::RequestRecord rejected = NotServed(0, 3.0, workload::TerminalStatus::kRejected, 4.0);
  EXPECT_FALSE(TtftParts(rejected, {}));
  EXPECT_FALSE(EndToEndParts(rejected, {}));
  EXPECT_FALSE(TtftParts(Completed(0, 3.0, {}), {}));
  const Handoff h = Disaggregated({0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0});
  EXPECT_FALSE(TtftParts(h.record, {}));
}

TEST(TimeParts, SumsAreExactWhereDifferencesOfStampsAreNot) {
  // Rounded differences do not add up.
  ASSERT_NE(0.2 + (0.86 - 0.2), 0.86);
  ASSERT_NE(0.2 + (0.86 - 0.2) + (0.99 - 0.86), 0.99);
  const sim::RequestRecord record = Aggregated(0.0, 0.2, {0.86, 0.99});
  ExpectExact(TtftParts(record, {}), TtftMs(record));
  ExpectExact(EndToEndParts(record, {}), EndToEndMs(record));
}

TEST(TimeParts, ARequestThatTookNoTimeHasZeroParts) {
  const sim::RequestRecord record = Aggregated(5.5, 5.5, {5.5, 5.5});
  EXPECT_EQ(List(EndToEndParts(record, {})), (std::array<double, 5>{}));
}

RC_GTEST_PROP(TimeParts, AddUpExactlyForAnyStamps, ()) {
  // Stamps of very different sizes, with all bits of the significand in use.
  std::array<double, 8> stamps{};
  for (double& stamp : stamps) {
    const auto digits = *rc::gen::inRange<std::int64_t>(0, (1LL << 53) - 1);
    stamp = std::ldexp(static_cast<double>(digits), *rc::gen::inRange(-70, -30));
  }
  std::ranges::sort(stamps);
  const Handoff h = Disaggregated(stamps);
  ExpectExact(TtftParts(h.record, h.detail), TtftMs(h.record));
  ExpectExact(EndToEndParts(h.record, h.detail), EndToEndMs(h.record));
  const sim::RequestRecord record = Aggregated(stamps[0], stamps[1], {stamps[2], stamps[3]});
  ExpectExact(TtftParts(record, {}), TtftMs(record));
  ExpectExact(EndToEndParts(record, {}), EndToEndMs(record));
}

}  // namespace
}  // namespace dynosim::report
