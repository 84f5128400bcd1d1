// SPDX-License-Identifier: Apache-2.0
#include "timing/op_level/nearest_rows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "perfdb/table.h"

namespace dynosim::timing {

using perfdb::Rows;
using perfdb::Table;

Rows NearestRows(const Table& table, Rows rows, std::size_t column, std::uint64_t wanted) {
  std::optional<std::uint64_t> below, smallest;
  for (Rows rest = rows; !rest.empty();) {
    const Rows group = table.FirstGroup(rest, column);
    const std::uint64_t value = table.column(column).At(rest.begin);
    if (group.empty()) {
      break;
    }
    smallest = std::min(smallest.value_or(value), value);
    if (value <= wanted) {
      below = std::max(below.value_or(value), value);
    }
    rest.begin = group.end;
  }
  return smallest ? table.Narrow(rows, column, below.value_or(*smallest)) : Rows{};
}

}  // namespace dynosim::timing
