// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/azure.h"

#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/result.h"
#include "base/text_file.h"
#include "workload/spec.h"
#include "workload/traces/contents.h"
#include "workload/traces/csv_rows.h"
#include "workload/traces/list_builder.h"
#include "workload/traces/unsigned_list.h"

namespace dynosim::workload {
namespace {

constexpr std::array<std::string_view, 3> kColumns = {"TIMESTAMP", "ContextTokens",
                                                      "GeneratedTokens"};
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

// Takes a number of exactly `digits` digits off the front.
bool TakeDigits(std::string_view& text, std::size_t digits, int& out) {
  if (text.size() < digits) {
    return false;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, out);
  const bool read = error == std::errc() && end == text.data() + digits && IsDigit(text[0]);
  text.remove_prefix(digits);
  return read;
}

bool TakeChar(std::string_view& text, std::string_view allowed) {
  if (text.empty() || allowed.find(text[0]) == allowed.npos) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

// Nanoseconds of the digits behind the decimal point.
std::int64_t TakeFraction(std::string_view& text) {
  std::int64_t ns = 0;
  std::int64_t unit = kNsPerSecond;
  while (!text.empty() && IsDigit(text[0])) {
    unit /= 10;
    ns += unit * (text[0] - '0');
    text.remove_prefix(1);
  }
  return ns;
}

// "+02:00", "Z" or nothing, in seconds.
std::optional<std::int64_t> ZoneSeconds(std::string_view text) {
  if (text.empty() || text == "Z") {
    return 0;
  }
  const int sign = text[0] == '-' ? -1 : 1;
  int hours = 0;
  int minutes = 0;
  if (!TakeChar(text, "+-") || !TakeDigits(text, 2, hours) || !TakeChar(text, ":") ||
      !TakeDigits(text, 2, minutes) || !text.empty()) {
    return std::nullopt;
  }
  return std::int64_t{sign} * (hours * 3600 + minutes * 60);
}

// "2023-11-16 18:15:46.6805900", with or without fraction and zone, as nanoseconds since 1970.
std::optional<std::int64_t> ParseTimestamp(std::string_view text) {
  namespace chrono = std::chrono;
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  if (!TakeDigits(text, 4, year) || !TakeChar(text, "-") || !TakeDigits(text, 2, month) ||
      !TakeChar(text, "-") || !TakeDigits(text, 2, day) || !TakeChar(text, " T") ||
      !TakeDigits(text, 2, hour) || !TakeChar(text, ":") || !TakeDigits(text, 2, minute) ||
      !TakeChar(text, ":") || !TakeDigits(text, 2, second)) {
    return std::nullopt;
  }
  const chrono::year_month_day date(chrono::year(year), chrono::month(static_cast<unsigned>(month)),
                                    chrono::day(static_cast<unsigned>(day)));
  // Years whose nanoseconds fit into 64 bits.
  if (!date.ok() || year < 1700 || year > 2200 || hour > 23 || minute > 59 || second > 60) {
    return std::nullopt;
  }
  const std::int64_t fraction_ns = TakeChar(text, ".") ? TakeFraction(text) : 0;
  const std::optional<std::int64_t> zone = ZoneSeconds(text);
  if (!zone) {
    return std::nullopt;
  }
  const std::int64_t days = chrono::sys_days(date).time_since_epoch().count();
  const std::int64_t seconds =
      days * 86'400 + std::int64_t{hour} * 3600 + std::int64_t{minute} * 60 + second - *zone;
  return seconds * kNsPerSecond + fraction_ns;
}

}  // namespace

Result<TraceContents> ReadAzure(const WorkloadSpec& /*workload*/, const TraceSpec& spec) {
  const std::string& path = spec.files.front();
  DYNO_TRY(const TextFile file, TextFile::Read(path));
  DYNO_TRY(const std::uint64_t block_size, TraceBlockSize(spec));
  CsvRows rows(path, file.Text());
  ListBuilder list(block_size);
  RelativeTime time;
  rows.ReadHeader(kColumns);
  while (!rows.Failed() && rows.NextRow()) {
    const std::optional<std::int64_t> at_ns = ParseTimestamp(rows.Cell(0));
    if (!at_ns) {
      rows.FailCell(0, "must be a date and time like 2023-11-16 18:15:46.6805900");
      break;
    }
    ListRow row{.line = rows.Line(), .timestamp_ms = time.Ms(*at_ns)};
    if (!rows.ReadUnsigned(1, row.input_tokens) || !rows.ReadUnsigned(2, row.output_tokens)) {
      break;
    }
    if (const std::optional<std::string> problem = list.AddUnique(row)) {
      rows.Fail(*problem);
    }
  }
  if (rows.Failed()) {
    return std::unexpected(rows.Problem());
  }
  list.StartAtZero();
  return TraceContents{.path = path, .table = list.Take(), .oddities = list.oddities()};
}

}  // namespace dynosim::workload
