// SPDX-License-Identifier: Apache-2.0
// CsvRows: reads a table with one header line, comma-separated, in place. Cells may be quoted (a
// doubled quote stands for one); lines may end in CR LF; blank lines are skipped but counted. The
// first problem stops the reading; its error names file, line and column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace dynosim::workload {

class CsvRows {
 public:
  CsvRows(std::string path, std::string_view text) : path_(std::move(path)), rest_(text) {}

  // Reads the header and finds the columns of these names; all must be there.
  bool ReadHeader(std::span<const std::string_view> columns);
  // Goes to the next row; false at the end and after a problem.
  bool NextRow();

  std::uint32_t Line() const { return line_; }
  // Cell of column `i` of ReadHeader's list.
  std::string_view Cell(std::size_t i) const { return cells_[places_[i]]; }
  // The cell as a whole number of at least 0.
  bool ReadUnsigned(std::size_t i, std::uint64_t& out);
  bool ReadDecimal(std::size_t i, double& out);

  bool Failed() const { return error_.has_value(); }
  const Error& Problem() const { return *error_; }
  // Records a problem of the current row; returns false.
  bool Fail(std::string message);
  bool FailCell(std::size_t i, std::string_view message);

 private:
  bool TakeLine();
  bool SplitCells(std::string_view line);

  std::string path_;
  std::string_view rest_;
  std::uint32_t line_ = 0;
  std::vector<std::string> cells_;
  std::size_t cell_count_ = 0;
  std::vector<std::size_t> places_;  // of the wanted columns
  std::vector<std::string> names_;   // of the wanted columns
  std::size_t columns_ = 0;
  std::optional<Error> error_;
};

}  // namespace dynosim::workload
