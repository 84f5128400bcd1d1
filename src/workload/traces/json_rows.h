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
//
// A member that is an object or a list is entered, read to its end in the same way, and left by the
// NextMember or NextElement that returns false.
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
  // kLines: one object per line. kObjects: objects one after the other, with any white space.
  enum class Framing : std::uint8_t { kLines, kObjects };

  // `text` stays valid, and has TextFile::kPadding readable bytes behind it.
  JsonRows(std::string path, std::string_view text, Framing framing = Framing::kLines);
  JsonRows(const JsonRows&) = delete;
  JsonRows& operator=(const JsonRows&) = delete;
  ~JsonRows();

  // Lines that hold another valid JSON value than an object are passed over, not refused.
  void SkipOtherValues() { skips_other_values_ = true; }

  // Goes to the next line that is not blank; false at the end and after a problem.
  bool NextRow();
  // Goes back to the beginning of the row that was read to its end.
  bool Rewind() { return !error_ && BeginAgain(); }
  // Goes to the next member of the row; false at its end and after a problem. Every member is
  // either read once or skipped.
  bool NextMember();
  // The same in a list.
  bool NextElement();

  // Enters the value of the current member or element. `entered` is false for null.
  bool EnterObject(bool& entered);
  bool EnterList(bool& entered);

  // The lines that were not read yet. A caller that knows a quicker way may read the next row from
  // here, and then takes its bytes, line break included.
  std::string_view Rest() const { return rest_; }
  void TakeRow(std::size_t bytes);

  // More lines of the same text, after all that came before were read.
  void Continue(std::string_view text) { rest_ = text; }

  std::uint32_t Line() const { return line_; }  // physical, from 1; where the row begins
  std::string_view Key() const { return key_; }

  // Each returns false after a problem. `out` is emptied for null.
  bool ReadUnsigned(std::uint64_t max, std::optional<std::uint64_t>& out);
  bool ReadSigned32(std::optional<std::int32_t>& out);
  bool ReadDecimal(std::optional<double>& out);
  // The text is valid until the next row.
  bool ReadString(std::optional<std::string_view>& out);
  // The same as a copy.
  bool ReadString(std::optional<std::string>& out);
  bool ReadUnsignedList(std::uint64_t max, UnsignedList& out);
  // Checks the syntax of a value that nobody wants.
  bool Skip();

  bool Failed() const { return error_.has_value(); }
  const Error& Problem() const { return *error_; }
  // Records that the row, or the nested value being read, lacks a member; returns `given`.
  bool Require(bool given, std::string_view member);
  // Records a problem of the current row; returns false. Within a nested value the message is
  // preceded by the path of that value.
  bool Fail(std::string message);
  // The same for the value of the current member; the message follows its path.
  bool FailMember(std::string_view message);

 private:
  struct Parser;

  bool TakeLine(std::string_view& row);
  bool TakeObject(std::string_view& row);
  bool BeginObject(std::string_view line);
  bool BeginAgain();
  bool BeginDocument(std::string_view line);
  bool IsOtherValue();
  bool EndObject();
  bool ReadKey();
  std::string Where() const;

  std::string path_;
  std::string_view rest_;
  std::string_view row_;
  Framing framing_;
  bool skips_other_values_ = false;
  std::uint32_t line_;
  std::uint32_t lines_in_row_ = 0;  // line breaks inside the current object
  std::string_view key_;
  std::optional<Error> error_;
  std::unique_ptr<Parser> parser_;
};

}  // namespace dynosim::workload
