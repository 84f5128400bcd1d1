// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/agentic_mooncake.h"

#include <array>
#include <cstdint>
#include <expected>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "base/text_file.h"
#include "workload/agentic_builder.h"
#include "workload/agentic_graph.h"
#include "workload/blank.h"
#include "workload/spec.h"
#include "workload/traces/contents.h"
#include "workload/traces/json_members.h"
#include "workload/traces/json_rows.h"
#include "workload/traces/unsigned_list.h"

namespace dynosim::workload {
namespace {

constexpr std::uint64_t kMaxU64 = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMaxU32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::string_view kSchemaName = "dynamo.agentic_mooncake";
constexpr std::uint64_t kSchemaVersion = 2;

using Text = std::optional<std::string>;

struct Header {
  Text schema, scope, source_format, source_digest;
  std::optional<std::uint64_t> version, block_size;
  bool has_source = false;
};

enum class HeaderField : std::uint8_t { kSchema, kVersion, kBlockSize, kScope, kSource, kOther };
constexpr std::array kHeaderFields = {
    MemberName<HeaderField>{"schema", HeaderField::kSchema},
    MemberName<HeaderField>{"version", HeaderField::kVersion},
    MemberName<HeaderField>{"block_size", HeaderField::kBlockSize},
    MemberName<HeaderField>{"hash_id_scope", HeaderField::kScope},
    MemberName<HeaderField>{"source", HeaderField::kSource},
};

enum class SourceField : std::uint8_t { kFormat, kDigest, kOther };
constexpr std::array kSourceFields = {
    MemberName<SourceField>{"format", SourceField::kFormat},
    MemberName<SourceField>{"digest", SourceField::kDigest},
};

bool ReadSource(JsonRows& rows, Header& header) {
  if (!rows.EnterObject(header.has_source) || !header.has_source) {
    return !rows.Failed();
  }
  MemberReader<SourceField> members(kSourceFields);
  while (members.Next(rows)) {
    switch (members.field()) {
      case SourceField::kFormat:
        rows.ReadString(header.source_format);
        break;
      case SourceField::kDigest:
        rows.ReadString(header.source_digest);
        break;
      case SourceField::kOther:
        rows.Skip();
        break;
    }
  }
  return !rows.Failed();
}

bool ReadHeaderMembers(JsonRows& rows, Header& header) {
  MemberReader<HeaderField> members(kHeaderFields);
  while (members.Next(rows)) {
    switch (members.field()) {
      case HeaderField::kSchema:
        rows.ReadString(header.schema);
        break;
      case HeaderField::kVersion:
        rows.ReadUnsigned(kMaxU32, header.version);
        break;
      case HeaderField::kBlockSize:
        rows.ReadUnsigned(kMaxU64, header.block_size);
        break;
      case HeaderField::kScope:
        rows.ReadString(header.scope);
        break;
      case HeaderField::kSource:
        ReadSource(rows, header);
        break;
      case HeaderField::kOther:
        rows.Skip();
        break;
    }
  }
  return !rows.Failed();
}

bool ReadHeader(JsonRows& rows, Header& header) {
  if (!ReadHeaderMembers(rows, header) || !rows.Require(header.schema.has_value(), "schema") ||
      !rows.Require(header.version.has_value(), "version") ||
      !rows.Require(header.block_size.has_value(), "block_size") ||
      !rows.Require(header.scope.has_value(), "hash_id_scope") ||
      !rows.Require(header.has_source, "source")) {
    return false;
  }
  if (*header.scope != "local") {
    return rows.Fail(fmt::format("hash_id_scope must be \"local\", got \"{}\"", *header.scope));
  }
  if (*header.schema != kSchemaName) {
    return rows.Fail(fmt::format("schema must be \"{}\", got \"{}\"", kSchemaName, *header.schema));
  }
  if (*header.version != kSchemaVersion) {
    return rows.Fail(fmt::format("version must be {}, got {}", kSchemaVersion, *header.version));
  }
  if (*header.block_size == 0) {
    return rows.Fail("block_size must be greater than 0");
  }
  if (IsBlank(header.source_format.value_or("")) || IsBlank(header.source_digest.value_or(""))) {
    return rows.Fail("source needs a format and a digest that are not empty");
  }
  return true;
}

enum class EdgeField : std::uint8_t { kRequestId, kTrigger, kDelay, kRelation, kOther };
constexpr std::array kEdgeFields = {
    MemberName<EdgeField>{"request_id", EdgeField::kRequestId},
    MemberName<EdgeField>{"trigger", EdgeField::kTrigger},
    MemberName<EdgeField>{"delay_ms", EdgeField::kDelay},
    MemberName<EdgeField>{"relation", EdgeField::kRelation},
};

bool ReadTrigger(JsonRows& rows, std::optional<AgenticTrigger>& out) {
  std::optional<std::string_view> text;
  if (!rows.ReadString(text) || !text) {
    return !rows.Failed();
  }
  for (const AgenticTrigger trigger : {AgenticTrigger::kDispatch, AgenticTrigger::kCompletion}) {
    if (*text == TriggerName(trigger)) {
      out = trigger;
      return true;
    }
  }
  return rows.FailMember("must be dispatch or completion");
}

bool ReadRelation(JsonRows& rows, std::optional<AgenticRelation>& out) {
  std::optional<std::string_view> text;
  if (!rows.ReadString(text) || !text) {
    return !rows.Failed();
  }
  for (const AgenticRelation relation : {AgenticRelation::kSequence, AgenticRelation::kSpawn,
                                         AgenticRelation::kJoin, AgenticRelation::kReplayBarrier}) {
    if (*text == RelationName(relation)) {
      out = relation;
      return true;
    }
  }
  return rows.FailMember("must be sequence, spawn, join or replay_barrier");
}

bool ReadDependency(JsonRows& rows, AgenticDependency& out) {
  bool is_object = false;
  if (!rows.EnterObject(is_object) || !is_object) {
    return rows.FailMember("must be an object");
  }
  Text request_id;
  std::optional<double> delay_ms;
  std::optional<AgenticTrigger> trigger;
  std::optional<AgenticRelation> relation;
  MemberReader<EdgeField> members(kEdgeFields);
  while (members.Next(rows)) {
    switch (members.field()) {
      case EdgeField::kRequestId:
        rows.ReadString(request_id);
        break;
      case EdgeField::kTrigger:
        ReadTrigger(rows, trigger);
        break;
      case EdgeField::kDelay:
        rows.ReadDecimal(delay_ms);
        break;
      case EdgeField::kRelation:
        ReadRelation(rows, relation);
        break;
      case EdgeField::kOther:
        rows.Skip();
        break;
    }
  }
  if (rows.Failed()) {
    return false;
  }
  if (!request_id || !trigger || !delay_ms || !relation) {
    return rows.FailMember("needs request_id, trigger, delay_ms and relation");
  }
  out = {.request_id = std::move(*request_id),
         .trigger = *trigger,
         .relation = *relation,
         .delay_ms = *delay_ms};
  return true;
}

bool ReadDependencies(JsonRows& rows, std::vector<AgenticDependency>& out) {
  bool is_list = false;
  if (!rows.EnterList(is_list) || !is_list) {
    return rows.FailMember("must be a list");
  }
  while (rows.NextElement()) {
    if (!ReadDependency(rows, out.emplace_back())) {
      return false;
    }
  }
  return !rows.Failed();
}

enum class Field : std::uint8_t {
  kRequestId,
  kPlayId,
  kSessionId,
  kModel,
  kInputLength,
  kOutputLength,
  kHashIds,
  kNotBefore,
  kOrdinal,
  kOutputTokenIds,
  kApiTime,
  kPriority,
  kStrictPriority,
  kPolicyClass,
  kDependencies,
  kOther,
};
constexpr std::array kFields = {
    MemberName<Field>{"request_id", Field::kRequestId},
    MemberName<Field>{"play_id", Field::kPlayId},
    MemberName<Field>{"session_id", Field::kSessionId},
    MemberName<Field>{"model", Field::kModel},
    MemberName<Field>{"input_length", Field::kInputLength},
    MemberName<Field>{"input_tokens", Field::kInputLength},
    MemberName<Field>{"output_length", Field::kOutputLength},
    MemberName<Field>{"output_tokens", Field::kOutputLength},
    MemberName<Field>{"hash_ids", Field::kHashIds},
    MemberName<Field>{"not_before_ms", Field::kNotBefore},
    MemberName<Field>{"source_play_ordinal", Field::kOrdinal},
    MemberName<Field>{"output_token_ids", Field::kOutputTokenIds},
    MemberName<Field>{"recorded_api_time_ms", Field::kApiTime},
    MemberName<Field>{"priority", Field::kPriority},
    MemberName<Field>{"strict_priority", Field::kStrictPriority},
    MemberName<Field>{"policy_class", Field::kPolicyClass},
    MemberName<Field>{"dependencies", Field::kDependencies},
};

// Members of a line that must be there, or have another type than in AgenticRequest.
struct Line {
  Text request_id, play_id, session_id, model;
  std::optional<double> not_before_ms;
  std::optional<std::int32_t> priority;
  std::optional<std::uint64_t> strict_priority;
  UnsignedList hash_ids, output_token_ids;
};

bool ReadMember(JsonRows& rows, Field field, Line& line, AgenticRequest& request) {
  switch (field) {
    case Field::kRequestId:
      return rows.ReadString(line.request_id);
    case Field::kPlayId:
      return rows.ReadString(line.play_id);
    case Field::kSessionId:
      return rows.ReadString(line.session_id);
    case Field::kModel:
      return rows.ReadString(line.model);
    case Field::kInputLength:
      return rows.ReadUnsigned(kMaxU64, request.input_tokens);
    case Field::kOutputLength:
      return rows.ReadUnsigned(kMaxU64, request.output_tokens);
    case Field::kHashIds:
      return rows.ReadUnsignedList(kMaxU64, line.hash_ids);
    case Field::kNotBefore:
      return rows.ReadDecimal(line.not_before_ms);
    case Field::kOrdinal:
      return rows.ReadUnsigned(kMaxU64, request.play_ordinal);
    case Field::kOutputTokenIds:
      return rows.ReadUnsignedList(kMaxU32, line.output_token_ids);
    case Field::kApiTime:
      return rows.ReadDecimal(request.recorded_api_time_ms);
    case Field::kPriority:
      return rows.ReadSigned32(line.priority);
    case Field::kStrictPriority:
      return rows.ReadUnsigned(kMaxU32, line.strict_priority);
    case Field::kPolicyClass:
      return rows.ReadString(request.policy_class);
    case Field::kDependencies:
      return ReadDependencies(rows, request.dependencies);
    case Field::kOther:
      return rows.Skip();
  }
  return false;
}

bool ReadRequest(JsonRows& rows, Line& line, AgenticRequest& request) {
  MemberReader<Field> members(kFields);
  while (members.Next(rows)) {
    if (!ReadMember(rows, members.field(), line, request)) {
      return false;
    }
  }
  if (rows.Failed() || !rows.Require(line.request_id.has_value(), "request_id") ||
      !rows.Require(line.play_id.has_value(), "play_id") ||
      !rows.Require(line.session_id.has_value(), "session_id") ||
      !rows.Require(line.model.has_value(), "model") ||
      !rows.Require(line.not_before_ms.has_value(), "not_before_ms")) {
    return false;
  }
  request.request_id = std::move(*line.request_id);
  request.play_id = std::move(*line.play_id);
  request.session_id = std::move(*line.session_id);
  request.model = std::move(*line.model);
  request.not_before_ms = *line.not_before_ms;
  request.priority = line.priority.value_or(0);
  request.strict_priority = static_cast<std::uint32_t>(line.strict_priority.value_or(0));
  if (line.hash_ids.present) {
    const auto ids = line.hash_ids.Values();
    request.hash_ids.emplace(ids.begin(), ids.end());
  }
  if (line.output_token_ids.present) {
    std::vector<std::uint32_t>& ids = request.output_token_ids.emplace();
    for (const std::uint64_t id : line.output_token_ids.Values()) {
      ids.push_back(static_cast<std::uint32_t>(id));
    }
  }
  return true;
}

}  // namespace

Result<TraceContents> ReadAgenticMooncake(const WorkloadSpec& /*workload*/, const TraceSpec& spec) {
  const std::string& path = spec.files.front();
  DYNO_TRY(const TextFile file, TextFile::Read(path));
  JsonRows rows(path, file.Text());
  Header header;
  if (!rows.NextRow() || !ReadHeader(rows, header)) {
    return rows.Failed() ? std::unexpected(rows.Problem())
                         : FailedError(path, "the header of an agentic trace is missing");
  }
  AgenticBuilder builder(*header.block_size);
  Line line;
  while (rows.NextRow()) {
    line.hash_ids.Clear();
    line.output_token_ids.Clear();
    AgenticRequest request{.where = fmt::format("{}:{}", path, rows.Line())};
    if (!ReadRequest(rows, line, request)) {
      break;
    }
    DYNO_TRY_VOID(builder.Add(std::move(request)));
    line.request_id = line.play_id = line.session_id = line.model = std::nullopt;
    line.not_before_ms.reset();
    line.priority.reset();
    line.strict_priority.reset();
  }
  if (rows.Failed()) {
    return std::unexpected(rows.Problem());
  }
  TraceContents contents{.path = path};
  DYNO_TRY(contents.graph, builder.Finish(path));
  contents.graph->source_format = std::move(*header.source_format);
  contents.graph->source_digest = std::move(*header.source_digest);
  return contents;
}

}  // namespace dynosim::workload
