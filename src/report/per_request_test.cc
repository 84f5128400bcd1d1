// SPDX-License-Identifier: Apache-2.0
// Rows: the reference's keys in its order, nulls where nothing happened, disaggregated fields when
// present.
#include "report/per_request.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
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

using workload::TerminalStatus;

std::string RowText(const sim::Outcome& outcome, std::size_t index = 0, JsonStyle style = {}) {
  return TextOf(style, [&](JsonWriter& out) { WriteRow(out, outcome, index, SessionName); });
}

Json Row(const sim::Outcome& outcome, std::size_t index = 0) {
  const auto parsed = ParseJson(RowText(outcome, index), "row");
  EXPECT_TRUE(parsed) << parsed.error().Text();
  return parsed.value_or(Json());
}

sim::Outcome OneCompleted() {
  sim::Outcome outcome;
  outcome.records = {Completed(0, 2.0, {10.0, 12.0, 16.0})};
  outcome.details.resize(1);
  outcome.details[0].routing = {{.worker = 1, .scheduler = 3, .dp_rank = 1}};
  outcome.details[0].admissions = {{.at_ms = 2.0, .reused_tokens = 64}};
  outcome.records[0].decode_scheduler = 3;
  outcome.records[0].reused_tokens_prefill_max = 64;
  return outcome;
}

TEST(Rows, ACompletedRowIsTheReferencesText) {
  EXPECT_EQ(
      RowText(OneCompleted()),
      R"({"session_id":null,"turn_index":null,"uuid":"00000000-0000-0000-0000-000000000001",)"
      R"("arrival_time_ms":2.0,"dispatched_at_ms":null,"first_admit_ms":2.0,)"
      R"("terminal_time_ms":16.0,"first_token_ms":10.0,"last_token_ms":16.0,"ttft_ms":8.0,)"
      R"("ttst_ms":2.0,"e2e_latency_ms":14.0,"itl_ms":3.0,"input_length":100,)"
      R"("requested_output_length":3,"output_length":3,"reused_input_tokens":64,)"
      R"("prefill_worker_idx":null,"decode_worker_idx":3,"prefill_admit_ms":null,)"
      R"("source_held_ms":null,"destination_reserved_ms":null,"destination_activated_ms":null,)"
      R"("decode_admit_ms":null,"source_released_ms":null,"decode_reused_input_tokens":null,)"
      R"("prefill_route_overlap_tokens":null,"decode_route_overlap_tokens":null,)"
      R"("routing_history":[{"pool":"agg","outcome":"immediate","queue_entered_at_ms":null,)"
      R"("released_at_ms":null,"queue_wait_ms":0.0,"logical_worker_id":1,"scheduler_id":3,)"
      R"("dp_rank":1,"reported_overlap_tokens":0,"selected_overlap_blocks":null,)"
      R"("best_available_overlap_blocks":null,"overlap_regret_blocks":null,)"
      R"("placement_replica_id":null}],"admission_history":[{"admission_ordinal":0,)"
      R"("pool_admission_ordinal":0,"pool":"agg","at_ms":2.0,"reused_input_tokens":64,)"
      R"("is_readmission":false}],"admission_count":1,"readmission_count":0,)"
      R"("pressure_record_ordinals":[],"terminal_status":"completed",)"
      R"("ttft_parts_ms":{"queue":0.0,"prefill":8.0,"transfer":0.0,"first_decode_wait":0.0,)"
      R"("decode":0.0},"e2e_parts_ms":{"queue":0.0,"prefill":8.0,"transfer":0.0,)"
      R"("first_decode_wait":0.0,"decode":6.0}})");
}

TEST(Rows, ARejectedRowHasNoLatencyAndEndsWithItsReason) {
  sim::Outcome outcome;
  outcome.records = {NotServed(4, 1.0, TerminalStatus::kRejected, 10.0)};
  outcome.details.resize(1);
  outcome.details[0].rejection_reason = "needs 80 blocks, the pool has 8";
  for (const JsonStyle style : {JsonStyle{}, JsonStyle{.indent = 0, .sort_keys = true}}) {
    const auto row = ParseJson(RowText(outcome, 0, style), "row");
    ASSERT_TRUE(row);
    EXPECT_EQ(row->object().back().first, "rejection_reason");
  }
  const Json row = Row(outcome);
  EXPECT_EQ(row.Find("rejection_reason")->string(), "needs 80 blocks, the pool has 8");
  EXPECT_EQ(row.Find("terminal_status")->string(), "rejected");
  for (const char* key : {"first_admit_ms", "first_token_ms", "last_token_ms", "ttft_ms", "ttst_ms",
                          "e2e_latency_ms", "itl_ms"}) {
    EXPECT_TRUE(row.Find(key)->is_null()) << key;
  }
  EXPECT_EQ(row.Find("reused_input_tokens")->number(), 0.0);
  EXPECT_EQ(row.Find("requested_output_length")->number(), 7.0);
  EXPECT_EQ(row.Find("output_length")->number(), 0.0);
  EXPECT_EQ(row.Find("decode_worker_idx")->number(), 1.0);
  EXPECT_EQ(row.Find("admission_count")->number(), 0.0);
}

TEST(Rows, OnlyRejectedRowsCarryAReason) {
  sim::Outcome outcome;
  outcome.records = {NotServed(0, 1.0, TerminalStatus::kFailed, 10.0), Completed(1, 0.0, {1.0})};
  EXPECT_EQ(Row(outcome, 0).Find("rejection_reason"), nullptr);
  EXPECT_EQ(Row(outcome, 0).Find("terminal_status")->string(), "failed");
  EXPECT_EQ(Row(outcome, 1).Find("rejection_reason"), nullptr);
}

TEST(Rows, OneTokenHasNoSecondTokenAndNoGap) {
  sim::Outcome outcome;
  outcome.records = {Completed(0, 0.0, {10.0})};
  const Json row = Row(outcome);
  EXPECT_EQ(row.Find("ttft_ms")->number(), 10.0);
  EXPECT_EQ(row.Find("e2e_latency_ms")->number(), 10.0);
  EXPECT_TRUE(row.Find("ttst_ms")->is_null());
  EXPECT_TRUE(row.Find("itl_ms")->is_null());
}

TEST(Rows, SessionsAreNamedAndTurnsNumbered) {
  sim::Outcome outcome = OneCompleted();
  outcome.records[0].session = 7;
  outcome.records[0].turn = 2;
  EXPECT_EQ(Row(outcome).Find("session_id")->string(), "session-7");
  EXPECT_EQ(Row(outcome).Find("turn_index")->number(), 2.0);
}

TEST(Rows, UuidsAreOrdinalsPlusOne) {
  EXPECT_EQ(RequestUuid(0), "00000000-0000-0000-0000-000000000001");
  EXPECT_EQ(RequestUuid(0xFFFFFFFF), "00000000-0000-0000-0000-000100000000");
  EXPECT_EQ(RequestUuid(0xABCD), "00000000-0000-0000-0000-00000000abce");
}

TEST(Rows, ReadmissionsAreCountedPerPool) {
  sim::Outcome outcome = OneCompleted();
  outcome.details[0].admissions = {{.pool = sim::Pool::kPrefill, .at_ms = 1.0},
                                   {.pool = sim::Pool::kDecode, .at_ms = 2.0},
                                   {.pool = sim::Pool::kDecode, .at_ms = 3.0, .reused_tokens = 5}};
  const Json row = Row(outcome);
  const Json::Array& history = row.Find("admission_history")->array();
  ASSERT_EQ(history.size(), 3U);
  EXPECT_EQ(DumpJson(history[1]),
            R"({"admission_ordinal":1,"pool_admission_ordinal":0,"pool":"decode","at_ms":2.0,)"
            R"("reused_input_tokens":0,"is_readmission":false})");
  EXPECT_EQ(DumpJson(history[2]),
            R"({"admission_ordinal":2,"pool_admission_ordinal":1,"pool":"decode","at_ms":3.0,)"
            R"("reused_input_tokens":5,"is_readmission":true})");
}

TEST(Rows, QueuedPlacementsShowTheirWaitAndRegret) {
  sim::Outcome outcome = OneCompleted();
  outcome.details[0].routing = {{.pool = sim::Pool::kDecode,
                                 .queued = true,
                                 .queue_entered_at_ms = 485.5,
                                 .released_at_ms = 848.75,
                                 .reported_overlap_tokens = 384,
                                 .selected_overlap_blocks = 4,
                                 .best_available_overlap_blocks = 6}};
  const Json row = Row(outcome);
  const Json& routing = row.Find("routing_history")->array()[0];
  EXPECT_EQ(routing.Find("pool")->string(), "decode");
  EXPECT_EQ(routing.Find("outcome")->string(), "queued");
  EXPECT_EQ(routing.Find("queue_entered_at_ms")->number(), 485.5);
  EXPECT_EQ(routing.Find("queue_wait_ms")->number(), 363.25);
  EXPECT_EQ(routing.Find("overlap_regret_blocks")->number(), 2.0);
}

TEST(Rows, DisaggregatedFieldsAreFilledWhenPresent) {
  sim::Outcome outcome = OneCompleted();
  sim::RequestDetail& detail = outcome.details[0];
  detail.prefill_scheduler = 2;
  detail.prefill_admit_ms = 2.0;
  detail.source_held_ms = 3.0;
  detail.destination_reserved_ms = 4.0;
  detail.destination_activated_ms = 5.0;
  detail.decode_admit_ms = 6.0;
  detail.source_released_ms = 7.0;
  detail.decode_reused_tokens = 8;
  detail.prefill_route_overlap_tokens = 9;
  detail.decode_route_overlap_tokens = 10;
  const Json row = Row(outcome);
  double want = 2.0;
  for (const char* key :
       {"prefill_admit_ms", "source_held_ms", "destination_reserved_ms", "destination_activated_ms",
        "decode_admit_ms", "source_released_ms", "decode_reused_input_tokens",
        "prefill_route_overlap_tokens", "decode_route_overlap_tokens"}) {
    EXPECT_EQ(row.Find(key)->number(), want++) << key;
  }
  EXPECT_EQ(row.Find("prefill_worker_idx")->number(), 2.0);
}

TEST(Rows, TheFileHasOneObjectALineForTerminalRequestsOnly) {
  sim::Outcome outcome;
  outcome.records = {Completed(0, 0.0, {1.0}), Completed(1, 0.0, {1.0}), Completed(2, 3.0, {4.0})};
  outcome.records[1].terminal = false;
  EXPECT_EQ(RowCount(outcome), 2U);
  const auto folder = std::filesystem::path(::testing::TempDir()) / "rows_test" / "deep";
  std::filesystem::remove_all(folder);
  const std::string path = (folder / "rows.jsonl").string();
  const auto written = WriteRequestsJsonl(path, outcome, SessionName);
  ASSERT_TRUE(written) << written.error().Text();
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
  }
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], RowText(outcome, 0));
  EXPECT_EQ(lines[1], RowText(outcome, 2));
}

}  // namespace
}  // namespace dynosim::report
