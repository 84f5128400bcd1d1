// SPDX-License-Identifier: Apache-2.0
#include "perfdb/table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace dynosim::perfdb {
namespace {

// First row of `rows` whose value is not below `value`.
std::size_t LowerBound(const Column& column, Rows rows, std::uint64_t value) {
  std::size_t begin = rows.begin;
  std::size_t count = rows.size();
  while (count > 0) {
    const std::size_t half = count / 2;
    if (column.At(begin + half) < value) {
      begin += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return begin;
}

}  // namespace

std::optional<std::uint64_t> Column::CodeOf(std::string_view text) const {
  const auto found = std::find(values.begin(), values.end(), text);
  if (found == values.end()) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(found - values.begin());
}

Rows Table::Narrow(Rows rows, std::size_t column, std::uint64_t value) const {
  const Column& values = columns_[column];
  Rows out{.begin = LowerBound(values, rows, value), .end = rows.end};
  if (value < UINT64_MAX) {
    out.end = LowerBound(values, out, value + 1);
  }
  return out;
}

Rows Table::Narrow(Rows rows, std::size_t column, std::string_view text) const {
  const auto code = columns_[column].CodeOf(text);
  return code ? Narrow(rows, column, *code) : Rows{.begin = rows.end, .end = rows.end};
}

Rows Table::FirstGroup(Rows rows, std::size_t column) const {
  return rows.empty() ? rows : Narrow(rows, column, columns_[column].At(rows.begin));
}

}  // namespace dynosim::perfdb
