// SPDX-License-Identifier: Apache-2.0
// Table: one measured table of a pack, as typed columns. Rows are sorted by the key columns and
// then by the coordinate columns, in column order, each combination once; the last column is the
// latency in milliseconds. Text columns hold codes into a dictionary. A table points into the
// mapped pack or owns its unpacked bytes; it stays valid while the pack does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dynosim::perfdb {

// Half-open range of rows.
struct Rows {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool empty() const { return begin >= end; }
  std::size_t size() const { return empty() ? 0 : end - begin; }
};

struct Column {
  std::string name;
  unsigned width = 0;               // bytes of one value: 1, 2, 4, 8
  const char* data = nullptr;       // little-endian, aligned to `width`
  std::vector<std::string> values;  // dictionary; empty for a column of numbers

  std::uint64_t At(std::size_t row) const {
    switch (width) {
      case 1:
        return static_cast<unsigned char>(data[row]);
      case 2:
        return Load<std::uint16_t>(row);
      case 4:
        return Load<std::uint32_t>(row);
      default:
        return Load<std::uint64_t>(row);
    }
  }
  double LatencyAt(std::size_t row) const { return Load<double>(row); }
  // Text of a code; empty when the code is not in the dictionary.
  std::string_view TextAt(std::size_t row) const {
    const std::uint64_t code = At(row);
    return code < values.size() ? std::string_view(values[static_cast<std::size_t>(code)])
                                : std::string_view();
  }
  std::optional<std::uint64_t> CodeOf(std::string_view text) const;

 private:
  template <class T>
  T Load(std::size_t row) const {
    T value;
    std::memcpy(&value, data + row * sizeof(T), sizeof value);
    return value;
  }
};

class Table {
 public:
  Table(std::string table_name, std::size_t row_count, std::vector<Column> table_columns,
        std::unique_ptr<char[]> owned)
      : name_(std::move(table_name)),
        rows_(row_count),
        columns_(std::move(table_columns)),
        owned_(std::move(owned)) {}
  // Columns may point into the owned bytes: a move keeps their address, a copy would not.
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  Table(Table&&) = default;
  Table& operator=(Table&&) = default;

  const std::string& name() const { return name_; }
  Rows All() const { return {.begin = 0, .end = rows_}; }
  const Column& column(std::size_t index) const { return columns_[index]; }
  std::size_t columns() const { return columns_.size(); }
  const Column& latency() const { return columns_.back(); }

  // Rows of `rows` whose value in a column is `value`. All columns before it must be constant in
  // `rows`.
  Rows Narrow(Rows rows, std::size_t column, std::uint64_t value) const;
  // The same for a text column; no rows when the text is not in its dictionary.
  Rows Narrow(Rows rows, std::size_t column, std::string_view text) const;
  // The first rows of `rows` that agree in the column with its first row.
  Rows FirstGroup(Rows rows, std::size_t column) const;

 private:
  std::string name_;
  std::size_t rows_;
  std::vector<Column> columns_;
  std::unique_ptr<char[]> owned_;
};

// Narrows by several leading values at once: Select(table, "fp8", 128u, ...).
template <class... Values>
Rows Select(const Table& table, const Values&... values) {
  Rows rows = table.All();
  std::size_t column = 0;
  ((rows = table.Narrow(rows, column++, values)), ...);
  return rows;
}

}  // namespace dynosim::perfdb
