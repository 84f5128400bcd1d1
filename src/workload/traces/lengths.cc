// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/lengths.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/result.h"
#include "base/text_file.h"
#include "workload/limits.h"
#include "workload/spec.h"
#include "workload/traces/contents.h"
#include "workload/traces/csv_rows.h"
#include "workload/traces/json_members.h"
#include "workload/traces/json_rows.h"
#include "workload/traces/list_builder.h"

namespace dynosim::workload {
namespace {

constexpr std::array<std::string_view, 3> kColumns = {"input_toks", "output_toks",
                                                      "arrival_time_ns"};
constexpr std::uint64_t kMaxNs = std::numeric_limits<std::int64_t>::max();

enum class Field : std::uint8_t { kInput, kOutput, kArrival, kOther };
constexpr std::array kFields = {
    MemberName<Field>{kColumns[0], Field::kInput},
    MemberName<Field>{kColumns[1], Field::kOutput},
    MemberName<Field>{kColumns[2], Field::kArrival},
};

struct Line {
  std::optional<std::uint64_t> input, output, arrival_ns;
};

bool ReadMember(JsonRows& rows, Field field, Line& line) {
  switch (field) {
    case Field::kInput:
      return rows.ReadUnsigned(kMaxTokens, line.input);
    case Field::kOutput:
      return rows.ReadUnsigned(kMaxTokens, line.output);
    case Field::kArrival:
      return rows.ReadUnsigned(kMaxNs, line.arrival_ns);
    case Field::kOther:
      return rows.Skip();
  }
  return false;
}

std::optional<std::string> AddLine(std::uint32_t number, const Line& line, RelativeTime& time,
                                   ListBuilder& list) {
  ListRow row{.line = number, .input_tokens = *line.input, .output_tokens = *line.output};
  if (line.arrival_ns) {
    row.timestamp_ms = time.Ms(static_cast<std::int64_t>(*line.arrival_ns));
  }
  return list.AddUnique(row);
}

Result<void> ReadJson(const std::string& path, std::string_view text, ListBuilder& list) {
  JsonRows rows(path, text);
  RelativeTime time;
  while (rows.NextRow()) {
    Line line;
    MemberReader<Field> members(kFields);
    while (members.Next(rows) && ReadMember(rows, members.field(), line)) {
    }
    if (!rows.Failed() && (!line.input || !line.output)) {
      rows.Fail(fmt::format("{} is missing", kColumns[line.input ? 1 : 0]));
    }
    if (rows.Failed()) {
      break;
    }
    if (const std::optional<std::string> problem = AddLine(rows.Line(), line, time, list)) {
      rows.Fail(*problem);
    }
  }
  return rows.Failed() ? std::unexpected(rows.Problem()) : Result<void>();
}

Result<void> ReadCsv(const std::string& path, std::string_view text, ListBuilder& list) {
  CsvRows rows(path, text);
  RelativeTime time;
  rows.ReadHeader(kColumns);
  while (!rows.Failed() && rows.NextRow()) {
    std::uint64_t input = 0;
    std::uint64_t output = 0;
    std::uint64_t arrival_ns = 0;
    if (!rows.ReadUnsigned(0, input) || !rows.ReadUnsigned(1, output) ||
        !rows.ReadUnsigned(2, arrival_ns)) {
      break;
    }
    if (arrival_ns > kMaxNs) {
      rows.FailCell(2, fmt::format("must be at most {}", kMaxNs));
      break;
    }
    const Line line{.input = input, .output = output, .arrival_ns = arrival_ns};
    if (const std::optional<std::string> problem = AddLine(rows.Line(), line, time, list)) {
      rows.Fail(*problem);
    }
  }
  return rows.Failed() ? std::unexpected(rows.Problem()) : Result<void>();
}

}  // namespace

Result<TraceContents> ReadLengths(const WorkloadSpec& /*workload*/, const TraceSpec& spec) {
  DYNO_TRY(const std::uint64_t block_size, TraceBlockSize(spec));
  const std::string& path = spec.files.front();
  DYNO_TRY(const TextFile file, TextFile::Read(path));
  ListBuilder list(block_size);
  const std::string_view text = file.Text();
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first == text.npos || text[first] == '{';
  DYNO_TRY_VOID(is_json ? ReadJson(path, text, list) : ReadCsv(path, text, list));
  list.StartAtZero();
  return TraceContents{.path = path, .table = list.Take(), .oddities = list.oddities()};
}

}  // namespace dynosim::workload
