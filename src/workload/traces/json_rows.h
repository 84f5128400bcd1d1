// SPDX-License-Identifier: Apache-2.0
// JsonRows: reads a JSON Lines text in place, one object per line, member by member. Blank lines
// are skipped but counted. The first problem stops the reading; its error names file, line and
// member. A typed read of `null` gives nothing, as if the member were absent.
//
//   while (rows.NextRow()) {
//     while (rows.NextMember()) { if (rows.Key() == "n") rows.ReadUnsigned(max, n); else
//     rows.Skip(); }
//     ... use the row, unless rows.Failed() ...
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "workload/traces/unsigned_list.h"

namespace dynosim::workload {

class JsonRows {
 public:
  // `text` stays valid, and has TextFile::kPadding readable bytes behind it.
  JsonRows(std::string path, std::string_view text);
  JsonRows(const JsonRows&) = delete;
  JsonRows& operator=(const JsonRows&) = delete;
  ~JsonRows();

  // Goes to the next line that is not blank; false at the end and after a problem.
  bool NextRow();
  // Goes to the next member of the row; false at its end and after a problem. Every member is
  // either read once or skipped.
  bool NextMember();

  // The lines that were not read yet. A caller that knows a quicker way may read the next row from
  // here, and then takes its bytes, line break included.
  std::string_view Rest() const { return rest_; }
  void TakeRow(std::size_t bytes);

  std::uint32_t Line() const { return line_; }  // physical, from 1
  std::string_view Key() const { return key_; }

  // Each returns false after a problem. `out` is emptied for null.
  bool ReadUnsigned(std::uint64_t max, std::optional<std::uint64_t>& out);
  bool ReadSigned32(std::optional<std::int32_t>& out);
  bool ReadDecimal(std::optional<double>& out);
  // The text is valid until the next row.
  bool ReadString(std::optional<std::string_view>& out);
  bool ReadUnsignedList(std::uint64_t max, UnsignedList& out);
  // Checks the syntax of a value that nobody wants.
  bool Skip();

  bool Failed() const { return error_.has_value(); }
  const Error& Problem() const { return *error_; }
  // Records a problem of the current row; returns false.
  bool Fail(std::string message);
  // The same for the value of the current member.
  bool FailMember(std::string_view message);

 private:
  struct Parser;

  bool BeginObject(std::string_view line);
  bool EndObject();
  bool ReadKey();

  std::string path_;
  std::string_view rest_;
  std::uint32_t line_ = 0;
  std::string_view key_;
  std::optional<Error> error_;
  std::unique_ptr<Parser> parser_;
};

}  // namespace dynosim::workload
