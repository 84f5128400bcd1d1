// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/burstgpt.h"

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/text_file.h"
#include "workload/spec.h"
#include "workload/traces/contents.h"
#include "workload/traces/csv_rows.h"
#include "workload/traces/list_builder.h"

namespace dynosim::workload {
namespace {

constexpr std::array<std::string_view, 3> kColumns = {"Timestamp", "Request tokens",
                                                      "Response tokens"};

}  // namespace

Result<TraceContents> ReadBurstGpt(const WorkloadSpec& /*workload*/, const TraceSpec& spec) {
  const std::string& path = spec.files.front();
  DYNO_TRY(const TextFile file, TextFile::Read(path));
  DYNO_TRY(const std::uint64_t block_size, TraceBlockSize(spec));
  CsvRows rows(path, file.Text());
  ListBuilder list(block_size);
  rows.ReadHeader(kColumns);
  while (!rows.Failed() && rows.NextRow()) {
    double at_s = 0.0;
    ListRow row{.line = rows.Line()};
    if (!rows.ReadDecimal(0, at_s) || !rows.ReadUnsigned(1, row.input_tokens) ||
        !rows.ReadUnsigned(2, row.output_tokens)) {
      break;
    }
    row.timestamp_ms = at_s * 1000.0;
    if (const std::optional<std::string> problem = list.AddUnique(row)) {
      rows.Fail(*problem);
    }
  }
  if (rows.Failed()) {
    return std::unexpected(rows.Problem());
  }
  return TraceContents{.path = path, .table = list.Take(), .oddities = list.oddities()};
}

}  // namespace dynosim::workload
