// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/csv_rows.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/numeric.h"
#include "base/result.h"

namespace dynosim::workload {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view Trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  return first == text.npos ? std::string_view()
                            : text.substr(first, text.find_last_not_of(kBlank) + 1 - first);
}

}  // namespace

bool CsvRows::Fail(std::string message) {
  if (!error_) {
    error_ = Error{.kind = ErrorKind::kFailed,
                   .where = fmt::format("{}:{}", path_, line_),
                   .message = std::move(message)};
  }
  return false;
}

bool CsvRows::FailCell(std::size_t i, std::string_view message) {
  constexpr std::size_t kShown = 40;
  return Fail(fmt::format("{} {}, got '{}'", names_[i], message, Cell(i).substr(0, kShown)));
}

bool CsvRows::SplitCells(std::string_view line) {
  cell_count_ = 0;
  bool more = true;
  while (more) {
    if (cell_count_ == cells_.size()) {
      cells_.emplace_back();
    }
    std::string& cell = cells_[cell_count_++];
    cell.clear();
    const std::size_t first = line.find_first_not_of(kBlank);
    if (first == line.npos || line[first] != '"') {
      const std::size_t end = line.find(',');
      cell = Trimmed(line.substr(0, end));
      more = end != line.npos;
      line.remove_prefix(more ? end + 1 : line.size());
      continue;
    }
    line.remove_prefix(first + 1);
    std::size_t quote = line.find('"');
    for (; quote != line.npos && line.substr(quote + 1).starts_with('"'); quote = line.find('"')) {
      cell += line.substr(0, quote + 1);
      line.remove_prefix(quote + 2);
    }
    if (quote == line.npos) {
      return Fail("a quoted cell has no closing quote on its line");
    }
    cell += line.substr(0, quote);
    line = line.substr(quote + 1);
    const std::size_t end = std::min(line.find(','), line.size());
    if (!Trimmed(line.substr(0, end)).empty()) {
      return Fail("text follows the closing quote of a cell");
    }
    more = end < line.size();
    line.remove_prefix(more ? end + 1 : end);
  }
  return true;
}

bool CsvRows::TakeLine() {
  while (!error_ && !rest_.empty()) {
    const std::string_view line = rest_.substr(0, rest_.find('\n'));
    rest_.remove_prefix(std::min(rest_.size(), line.size() + 1));
    ++line_;
    if (!Trimmed(line).empty()) {
      return SplitCells(Trimmed(line));
    }
  }
  return false;
}

bool CsvRows::ReadHeader(std::span<const std::string_view> columns) {
  if (!TakeLine()) {
    return error_ ? false : Fail("the file is empty; a header line is needed");
  }
  columns_ = cell_count_;
  for (const std::string_view name : columns) {
    const auto header = std::span(cells_).first(columns_);
    const auto at = std::find(header.begin(), header.end(), name);
    if (at == header.end()) {
      return Fail(fmt::format("the header has no column {}", name));
    }
    places_.push_back(static_cast<std::size_t>(at - header.begin()));
    names_.emplace_back(name);
  }
  return true;
}

bool CsvRows::NextRow() {
  if (!TakeLine()) {
    return false;
  }
  if (cell_count_ != columns_) {
    return Fail(fmt::format("the row has {} cells, the header {}", cell_count_, columns_));
  }
  return true;
}

bool CsvRows::ReadUnsigned(std::size_t i, std::uint64_t& out) {
  const std::string_view cell = Cell(i);
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), out);
  if (error != std::errc() || end != cell.data() + cell.size()) {
    return FailCell(i, "must be a whole number of at least 0");
  }
  return true;
}

bool CsvRows::ReadDecimal(std::size_t i, double& out) {
  const std::optional<double> value = ParseTraceDecimal(Cell(i));
  if (!value) {
    return FailCell(i, "must be a number");
  }
  out = *value;
  return true;
}

}  // namespace dynosim::workload
