// SPDX-License-Identifier: Apache-2.0
// A table from rows that a test writes down: u64 columns and the latency.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "perfdb/table.h"

namespace dynosim::perfdb {

class TestTable {
 public:
  // `first_names` makes the first column one of texts.
  TestTable(const std::vector<std::vector<std::uint64_t>>& rows,
            const std::vector<double>& latencies, std::vector<std::string> first_names = {})
      : table_(Make(rows, latencies, std::move(first_names))) {}

  const Table& table() const { return table_; }

 private:
  static Table Make(const std::vector<std::vector<std::uint64_t>>& rows,
                    const std::vector<double>& latencies, std::vector<std::string> first_names) {
    const std::size_t count = rows.front().size();
    auto bytes = std::make_unique<char[]>((count + 1) * rows.size() * 8);
    std::vector<Column> columns;
    for (std::size_t c = 0; c <= count; ++c) {
      char* const at = bytes.get() + c * rows.size() * 8;
      for (std::size_t row = 0; row < rows.size(); ++row) {
        if (c == count) {
          std::memcpy(at + row * 8, &latencies[row], 8);
        } else {
          std::memcpy(at + row * 8, &rows[row][c], 8);
        }
      }
      columns.push_back({.name = "column", .width = 8, .data = at, .values = {}});
    }
    columns.front().values = std::move(first_names);
    return Table("test", rows.size(), std::move(columns), std::move(bytes));
  }

  Table table_;
};

}  // namespace dynosim::perfdb
