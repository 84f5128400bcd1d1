// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/bailian.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/result.h"
#include "base/text_file.h"
#include "workload/limits.h"
#include "workload/spec.h"
#include "workload/traces/contents.h"
#include "workload/traces/json_members.h"
#include "workload/traces/json_rows.h"
#include "workload/traces/list_builder.h"
#include "workload/traces/unsigned_list.h"

namespace dynosim::workload {
namespace {

constexpr std::int64_t kBlockSize = 16;

enum class Field : std::uint8_t { kTimestamp, kInput, kOutput, kHashIds, kOther };
constexpr std::array kFields = {
    MemberName<Field>{"timestamp", Field::kTimestamp},
    MemberName<Field>{"input_length", Field::kInput},
    MemberName<Field>{"output_length", Field::kOutput},
    MemberName<Field>{"hash_ids", Field::kHashIds},
};

struct Line {
  std::optional<double> at_s;
  std::optional<std::uint64_t> input, output;
};

bool ReadMember(JsonRows& rows, Field field, Line& line, UnsignedList& ids) {
  switch (field) {
    case Field::kTimestamp:
      return rows.ReadDecimal(line.at_s);
    case Field::kInput:
      return rows.ReadUnsigned(kMaxTokens, line.input);
    case Field::kOutput:
      return rows.ReadUnsigned(kMaxTokens, line.output);
    case Field::kHashIds:
      return rows.ReadUnsignedList(std::numeric_limits<std::uint64_t>::max(), ids);
    case Field::kOther:
      return rows.Skip();
  }
  return false;
}

bool ReadLine(JsonRows& rows, Line& line, UnsignedList& ids) {
  ids.Clear();
  MemberReader<Field> members(kFields);
  while (members.Next(rows) && ReadMember(rows, members.field(), line, ids)) {
  }
  const bool given[] = {line.at_s.has_value(), line.input.has_value(), line.output.has_value(),
                        ids.present};
  for (std::size_t i = 0; i < kFields.size() && !rows.Failed(); ++i) {
    if (!given[i]) {
      rows.Fail(fmt::format("{} is missing", kFields[i].name));
    }
  }
  return !rows.Failed();
}

}  // namespace

Result<TraceContents> ReadBailian(const WorkloadSpec& /*workload*/, const TraceSpec& spec) {
  TraceSpec sized = spec;
  sized.block_size = spec.block_size.value_or(kBlockSize);
  DYNO_TRY(const std::uint64_t block_size, TraceBlockSize(sized));
  const std::string& path = spec.files.front();
  DYNO_TRY(const TextFile file, TextFile::Read(path));
  JsonRows rows(path, file.Text());
  ListBuilder list(block_size);
  UnsignedList ids;
  while (rows.NextRow()) {
    Line line;
    if (!ReadLine(rows, line, ids)) {
      break;
    }
    const std::optional<std::string> problem = list.Add({.line = rows.Line(),
                                                         .timestamp_ms = *line.at_s * 1000.0,
                                                         .input_tokens = *line.input,
                                                         .output_tokens = *line.output},
                                                        ids.Values());
    if (problem) {
      rows.Fail(*problem);
    }
  }
  if (rows.Failed()) {
    return std::unexpected(rows.Problem());
  }
  return TraceContents{.path = path, .table = list.Take(), .oddities = list.oddities()};
}

}  // namespace dynosim::workload
