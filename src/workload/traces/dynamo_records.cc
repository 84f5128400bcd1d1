// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/dynamo_records.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <expected>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/numeric.h"
#include "base/result.h"
#include "workload/blank.h"
#include "workload/traces/json_members.h"
#include "workload/traces/json_rows.h"
#include "workload/traces/unsigned_list.h"

namespace dynosim::workload {
namespace {

constexpr std::uint64_t kMaxU64 = std::numeric_limits<std::uint64_t>::max();
constexpr std::string_view kSchemaName = "dynamo.request.trace.v1";

using Text = std::optional<std::string>;

// A record as written.
struct Record {
  Text schema;
  std::optional<std::uint64_t> event_time_ms;
  bool has_request = false;
  Text request_id, model;
  std::optional<std::uint64_t> output_tokens, received_ms;
  std::optional<double> total_time_ms;
  bool has_replay = false;
  std::optional<std::uint64_t> block_size, input_length;
  UnsignedList hashes;
  bool has_context = false;
  Text session, parent_session;
  bool has_tool = false;
  Text tool_id, tool_class;
  std::optional<std::uint64_t> tool_started_ms, tool_ended_ms;
  std::optional<double> tool_duration_ms;
  bool has_claude = false;
  Text source, consumer, child, mode;
};

enum class ReplayField : std::uint8_t { kBlockSize, kInputLength, kHashes, kOther };
constexpr std::array kReplayFields = {
    MemberName<ReplayField>{"trace_block_size", ReplayField::kBlockSize},
    MemberName<ReplayField>{"input_length", ReplayField::kInputLength},
    MemberName<ReplayField>{"input_sequence_hashes", ReplayField::kHashes},
};

bool ReadReplay(JsonRows& rows, Record& record) {
  if (!rows.EnterObject(record.has_replay) || !record.has_replay) {
    return !rows.Failed();
  }
  MemberReader<ReplayField> members(kReplayFields);
  while (members.Next(rows)) {
    switch (members.field()) {
      case ReplayField::kBlockSize:
        rows.ReadUnsigned(kMaxU64, record.block_size);
        break;
      case ReplayField::kInputLength:
        rows.ReadUnsigned(kMaxU64, record.input_length);
        break;
      case ReplayField::kHashes:
        rows.ReadUnsignedList(kMaxU64, record.hashes);
        break;
      case ReplayField::kOther:
        rows.Skip();
        break;
    }
  }
  return !rows.Failed();
}

enum class RequestField : std::uint8_t {
  kId,
  kModel,
  kOutputTokens,
  kReceived,
  kTotalTime,
  kReplay,
  kOther,
};
constexpr std::array kRequestFields = {
    MemberName<RequestField>{"request_id", RequestField::kId},
    MemberName<RequestField>{"model", RequestField::kModel},
    MemberName<RequestField>{"output_tokens", RequestField::kOutputTokens},
    MemberName<RequestField>{"request_received_ms", RequestField::kReceived},
    MemberName<RequestField>{"total_time_ms", RequestField::kTotalTime},
    MemberName<RequestField>{"replay", RequestField::kReplay},
};

bool ReadRequest(JsonRows& rows, Record& record) {
  if (!rows.EnterObject(record.has_request) || !record.has_request) {
    return !rows.Failed();
  }
  MemberReader<RequestField> members(kRequestFields);
  while (members.Next(rows)) {
    switch (members.field()) {
      case RequestField::kId:
        rows.ReadString(record.request_id);
        break;
      case RequestField::kModel:
        rows.ReadString(record.model);
        break;
      case RequestField::kOutputTokens:
        rows.ReadUnsigned(kMaxU64, record.output_tokens);
        break;
      case RequestField::kReceived:
        rows.ReadUnsigned(kMaxU64, record.received_ms);
        break;
      case RequestField::kTotalTime:
        rows.ReadDecimal(record.total_time_ms);
        break;
      case RequestField::kReplay:
        ReadReplay(rows, record);
        break;
      case RequestField::kOther:
        rows.Skip();
        break;
    }
  }
  return !rows.Failed();
}

bool ReadContext(JsonRows& rows, Record& record) {
  if (!rows.EnterObject(record.has_context) || !record.has_context) {
    return !rows.Failed();
  }
  while (rows.NextMember()) {
    if (rows.Key() == "session_id") {
      rows.ReadString(record.session);
    } else if (rows.Key() == "parent_session_id") {
      rows.ReadString(record.parent_session);
    } else {
      rows.Skip();
    }
  }
  return !rows.Failed();
}

bool ReadClaude(JsonRows& rows, Record& record) {
  if (!rows.EnterObject(record.has_claude) || !record.has_claude) {
    return !rows.Failed();
  }
  while (rows.NextMember()) {
    if (rows.Key() == "source_request_id") {
      rows.ReadString(record.source);
    } else if (rows.Key() == "consumer_request_id") {
      rows.ReadString(record.consumer);
    } else if (rows.Key() == "child_session_id") {
      rows.ReadString(record.child);
    } else if (rows.Key() == "execution_mode") {
      rows.ReadString(record.mode);
    } else {
      rows.Skip();
    }
  }
  return !rows.Failed();
}

bool ReadTool(JsonRows& rows, Record& record) {
  if (!rows.EnterObject(record.has_tool) || !record.has_tool) {
    return !rows.Failed();
  }
  while (rows.NextMember()) {
    if (rows.Key() == "tool_call_id") {
      rows.ReadString(record.tool_id);
    } else if (rows.Key() == "tool_class") {
      rows.ReadString(record.tool_class);
    } else if (rows.Key() == "started_at_unix_ms") {
      rows.ReadUnsigned(kMaxU64, record.tool_started_ms);
    } else if (rows.Key() == "ended_at_unix_ms") {
      rows.ReadUnsigned(kMaxU64, record.tool_ended_ms);
    } else if (rows.Key() == "duration_ms") {
      rows.ReadDecimal(record.tool_duration_ms);
    } else if (rows.Key() == "claude") {
      ReadClaude(rows, record);
    } else {
      rows.Skip();
    }
  }
  return !rows.Failed();
}

bool ReadRecordMembers(JsonRows& rows, bool wrapped, Record& record) {
  while (rows.NextMember()) {
    if (wrapped) {
      bool is_object = false;
      if (rows.Key() != "event") {
        rows.Skip();
      } else if (rows.EnterObject(is_object) && is_object) {
        ReadRecordMembers(rows, false, record);
      }
    } else if (rows.Key() == "schema") {
      rows.ReadString(record.schema);
    } else if (rows.Key() == "event_time_unix_ms") {
      rows.ReadUnsigned(kMaxU64, record.event_time_ms);
    } else if (rows.Key() == "request") {
      ReadRequest(rows, record);
    } else if (rows.Key() == "agent_context") {
      ReadContext(rows, record);
    } else if (rows.Key() == "tool") {
      ReadTool(rows, record);
    } else {
      rows.Skip();
    }
  }
  return !rows.Failed();
}

// What kind of record the row is. A record may be the row, or its member `event`.
struct Kind {
  bool wrapped = false;
  Text event_type;
};

bool ReadEventType(JsonRows& rows, bool may_be_wrapped, Kind& kind) {
  while (rows.NextMember()) {
    if (may_be_wrapped && rows.Key() == "event") {
      kind.event_type.reset();
      if (!rows.EnterObject(kind.wrapped) || !kind.wrapped) {
        return rows.FailMember("must be an object");
      }
      ReadEventType(rows, false, kind);
    } else if (rows.Key() == "event_type" && kind.wrapped != may_be_wrapped) {
      rows.ReadString(kind.event_type);
    } else {
      rows.Skip();
    }
  }
  return !rows.Failed();
}

bool CheckRecord(JsonRows& rows, const Record& record) {
  if (!rows.Require(record.schema.has_value(), "schema") ||
      !rows.Require(record.event_time_ms.has_value(), "event_time_unix_ms")) {
    return false;
  }
  if (*record.schema != kSchemaName) {
    return rows.Fail(fmt::format("schema must be \"{}\", got \"{}\"", kSchemaName, *record.schema));
  }
  if (record.has_context && !rows.Require(record.session.has_value(), "agent_context.session_id")) {
    return false;
  }
  if (record.has_context && IsBlank(*record.session)) {
    return rows.Fail("agent_context.session_id is empty");
  }
  return true;
}

void SetTimes(const Record& record, DynamoRequest& request) {
  const auto total_ms =
      SaturatingCast<std::uint64_t>(RoundHalfAway(record.total_time_ms.value_or(0.0)));
  const std::uint64_t event_ms = *record.event_time_ms;
  request.start_ms =
      record.received_ms.value_or(event_ms > total_ms ? event_ms - total_ms : std::uint64_t{0});
  request.end_ms = record.received_ms && record.total_time_ms
                       ? SaturatingAdd(*record.received_ms, total_ms)
                       : event_ms;
}

bool CheckRequest(JsonRows& rows, const Record& record) {
  if (!rows.Require(record.has_request, "request (of the request_end)") ||
      !rows.Require(record.request_id.has_value(), "request.request_id") ||
      !rows.Require(record.has_replay, "request.replay") ||
      !rows.Require(record.block_size.has_value(), "request.replay.trace_block_size") ||
      !rows.Require(record.input_length.has_value(), "request.replay.input_length") ||
      !rows.Require(record.hashes.present, "request.replay.input_sequence_hashes")) {
    return false;
  }
  if (IsBlank(*record.request_id)) {
    return rows.Fail("request.request_id is empty");
  }
  if (record.total_time_ms &&
      !(std::isfinite(*record.total_time_ms) && *record.total_time_ms >= 0)) {
    return rows.Fail(fmt::format("request.total_time_ms must be finite and at least 0, got {}",
                                 *record.total_time_ms));
  }
  return true;
}

bool AddRequest(JsonRows& rows, const std::string& where, Record& record, DynamoRecords& records) {
  if (!CheckRequest(rows, record)) {
    return false;
  }
  DynamoRequest request{.where = where};
  request.id = std::move(*record.request_id);
  request.model = std::move(record.model);
  request.output_tokens = record.output_tokens;
  request.block_size = *record.block_size;
  request.input_tokens = *record.input_length;
  const auto hashes = record.hashes.Values();
  request.hash_ids.assign(hashes.begin(), hashes.end());
  request.session = std::move(record.session);
  request.parent_session = std::move(record.parent_session);
  SetTimes(record, request);
  records.requests.push_back(std::move(request));
  return true;
}

bool AddTool(JsonRows& rows, const std::string& where, Record& record, DynamoRecords& records) {
  if (!rows.Require(record.has_tool, "tool") ||
      !rows.Require(record.tool_id.has_value(), "tool.tool_call_id") ||
      !rows.Require(record.tool_class.has_value(), "tool.tool_class")) {
    return false;
  }
  ++records.tool_records;
  if (!record.has_claude) {
    return true;
  }
  if (!rows.Require(record.source.has_value(), "tool.claude.source_request_id") ||
      !rows.Require(record.mode.has_value(), "tool.claude.execution_mode")) {
    return false;
  }
  if (*record.mode != "blocking" && *record.mode != "background") {
    return rows.Fail(
        fmt::format("execution_mode of tool \"{}\" ({}) must be blocking or "
                    "background, got \"{}\"",
                    *record.tool_id, *record.tool_class, *record.mode));
  }
  records.tools.push_back({.where = where,
                           .id = std::move(*record.tool_id),
                           .tool_class = std::move(*record.tool_class),
                           .source_request = std::move(*record.source),
                           .consumer_request = std::move(record.consumer),
                           .child_session = std::move(record.child)});
  return true;
}

bool ReadRow(JsonRows& rows, const std::string& path, DynamoRecords& records) {
  Kind kind;
  if (!ReadEventType(rows, true, kind) ||
      !rows.Require(kind.event_type.has_value(), "event_type")) {
    return false;
  }
  const std::string& type = *kind.event_type;
  if (type == "request_payload" || type == "tool_start") {
    return true;
  }
  const bool is_request = type == "request_end";
  if (!is_request && type != "tool_end" && type != "tool_error") {
    return rows.Fail(
        fmt::format("event_type must be request_end, request_payload, tool_start, "
                    "tool_end or tool_error, got \"{}\"",
                    type));
  }
  Record record;
  if (!rows.Rewind() || !ReadRecordMembers(rows, kind.wrapped, record) ||
      !CheckRecord(rows, record)) {
    return false;
  }
  const std::string where = fmt::format("{}:{}", path, rows.Line());
  return is_request ? AddRequest(rows, where, record, records)
                    : AddTool(rows, where, record, records);
}

}  // namespace

Result<void> ReadDynamoRecords(const std::string& path, std::string_view text,
                               DynamoRecords& records) {
  JsonRows rows(path, text);
  rows.SkipOtherValues();
  while (rows.NextRow() && ReadRow(rows, path, records)) {
  }
  if (rows.Failed()) {
    return std::unexpected(rows.Problem());
  }
  return {};
}

}  // namespace dynosim::workload
