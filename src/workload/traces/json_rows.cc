// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/json_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "base/numeric.h"
#include "base/result.h"
#include "base/text_file.h"
#include "workload/traces/unsigned_list.h"

namespace dynosim::workload {

namespace ondemand = simdjson::ondemand;

namespace {

// Levels of values that readers enter.
constexpr std::size_t kMaxLevels = 8;

// An object or list that is being read.
struct Level {
  bool list = false;
  bool first = true;
  ondemand::object_iterator member, member_end;
  ondemand::array_iterator element, element_end;
  std::uint64_t index = 0;  // of the current element
  std::string key;          // of the current member, kept while one of its values is entered
};

}  // namespace

struct JsonRows::Parser {
  ondemand::parser parser;
  ondemand::document document;
  ondemand::value value;
  std::array<Level, kMaxLevels> levels;
  std::size_t depth = 0;  // levels in use

  Level& Top() { return levels[depth - 1]; }
  Level& Push(bool list) {
    Level& level = levels[depth++];
    level.list = list;
    level.first = true;
    level.index = 0;
    return level;
  }
  bool BeginMembers(ondemand::object& object) {
    Level& level = Push(false);
    return object.begin().get(level.member) == simdjson::SUCCESS &&
           object.end().get(level.member_end) == simdjson::SUCCESS;
  }
};

namespace {

static_assert(TextFile::kPadding >= simdjson::SIMDJSON_PADDING);

// A line of this size holds about ten million block ids.
constexpr std::size_t kMaxLine = std::size_t{128} << 20;
constexpr std::size_t kMaxObject = std::size_t{2} << 30;
constexpr int kMaxDepth = 512;
constexpr std::string_view kBlank = " \t\r\v\f";

std::string_view Token(ondemand::value& value) {
  const std::string_view token = value.raw_json_token();
  return token.substr(0, token.find_last_not_of(" \t\r\n") + 1);
}

std::string_view Digits(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && IsDigit(text[n])) {
    ++n;
  }
  return text.substr(0, n);
}

// Grammar only: numbers beyond the range of a double are fine in members that nobody reads.
bool IsNumber(std::string_view text) {
  if (text.starts_with('-')) {
    text.remove_prefix(1);
  }
  const std::string_view whole = Digits(text);
  if (whole.empty() || (whole.size() > 1 && whole[0] == '0')) {
    return false;
  }
  text.remove_prefix(whole.size());
  if (text.starts_with('.')) {
    const std::string_view fraction = Digits(text.substr(1));
    text.remove_prefix(1 + fraction.size());
    if (fraction.empty()) {
      return false;
    }
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-')) {
      text.remove_prefix(1);
    }
    const std::string_view exponent = Digits(text);
    text.remove_prefix(exponent.size());
    return !exponent.empty() && text.empty();
  }
  return text.empty();
}

// A quoted string whose escapes are well-formed; control characters and the closing quote are
// checked by the parser's first pass.
bool IsString(std::string_view text) {
  if (text.size() < 2 || text.back() != '"') {
    return false;
  }
  text = text.substr(1, text.size() - 2);
  for (std::size_t at = text.find('\\'); at != std::string_view::npos; at = text.find('\\')) {
    text.remove_prefix(at + 1);
    if (text.empty() || !std::strchr("\"\\/bfnrtu", text[0])) {
      return false;
    }
    const std::string_view hex = text.substr(1, 4);
    if (text[0] == 'u' &&
        (hex.size() < 4 || hex.find_first_not_of("0123456789abcdefABCDEF") != hex.npos)) {
      return false;
    }
    text.remove_prefix(1);
  }
  return true;
}

bool CheckValue(ondemand::value value, int depth);

bool CheckElements(ondemand::array& array, int depth) {
  for (auto element : array) {
    ondemand::value inner;
    if (element.get(inner) != simdjson::SUCCESS || !CheckValue(inner, depth + 1)) {
      return false;
    }
  }
  return true;
}

bool CheckArray(ondemand::value& value, int depth) {
  ondemand::array array;
  return value.get_array().get(array) == simdjson::SUCCESS && CheckElements(array, depth);
}

bool CheckObject(ondemand::value& value, int depth) {
  ondemand::object object;
  if (value.get_object().get(object) != simdjson::SUCCESS) {
    return false;
  }
  for (auto member : object) {
    ondemand::field field;
    if (std::move(member).get(field) != simdjson::SUCCESS ||
        !CheckValue(std::move(field).value(), depth + 1)) {
      return false;
    }
  }
  return true;
}

bool IsScalar(std::string_view token) {
  return token.starts_with('"')
             ? IsString(token)
             : token == "true" || token == "false" || token == "null" || IsNumber(token);
}

bool CheckValue(ondemand::value value, int depth) {
  if (depth > kMaxDepth) {
    return false;
  }
  const std::string_view token = Token(value);
  switch (token.empty() ? '\0' : token[0]) {
    case '[':
      return CheckArray(value, depth);
    case '{':
      return CheckObject(value, depth);
    case '"': {
      // A string that is not taken here would be passed over as a key if a colon follows it.
      ondemand::raw_json_string taken;
      return IsScalar(token) && value.get_raw_json_string().get(taken) == simdjson::SUCCESS;
    }
    default:
      return IsScalar(token);
  }
}

// Place of the quote that closes the string whose opening quote is at `at`.
std::size_t StringEnd(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    at += text[at] == '\\' ? 1 : 0;
  }
  return at;
}

// Bytes of the object that the text begins with: up to its closing bracket, or all of the text.
std::size_t ObjectBytes(std::string_view text) {
  std::size_t depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    // Digits, commas and spaces come before the brackets in ASCII.
    while (at < text.size() && static_cast<unsigned char>(text[at]) < '{' && text[at] != '"') {
      ++at;
    }
    if (at == text.size()) {
      break;
    }
    if (text[at] == '"') {
      at = StringEnd(text, at);
    } else if (text[at] == '{') {
      ++depth;
    } else if (text[at] == '}' && --depth == 0) {
      return at + 1;
    }
  }
  return text.size();
}

std::uint32_t CountLines(std::string_view text) {
  std::uint32_t lines = 0;
  for (std::size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1)) {
    ++lines;
  }
  return lines;
}

}  // namespace

JsonRows::JsonRows(std::string path, std::string_view text, Framing framing)
    : path_(std::move(path)),
      rest_(text),
      framing_(framing),
      line_(framing == Framing::kLines ? 0 : 1),
      parser_(std::make_unique<Parser>()) {}

JsonRows::~JsonRows() = default;

bool JsonRows::Fail(std::string message) {
  if (!error_) {
    const std::string where = Where();
    error_ = Error{.kind = ErrorKind::kFailed,
                   .where = fmt::format("{}:{}", path_, line_),
                   .message = where.empty() ? std::move(message) : where + ": " + message};
  }
  return false;
}

bool JsonRows::FailMember(std::string_view message) {
  if (error_) {
    return false;
  }
  const Level& level = parser_->Top();
  std::string where = Where();
  where += level.list ? fmt::format("[{}]", level.index)
                      : fmt::format("{}{}", where.empty() ? "" : ".", key_);
  error_ = Error{.kind = ErrorKind::kFailed,
                 .where = fmt::format("{}:{}", path_, line_),
                 .message = fmt::format("{} {}", where, message)};
  return false;
}

bool JsonRows::Require(bool given, std::string_view member) {
  return given || Fail(fmt::format("{} is missing", member));
}

// Path of the value that is being read, empty for the row itself.
std::string JsonRows::Where() const {
  std::string where;
  for (std::size_t depth = 0; depth + 1 < parser_->depth; ++depth) {
    const Level& level = parser_->levels[depth];
    where += level.list ? fmt::format("[{}]", level.index)
                        : fmt::format("{}{}", where.empty() ? "" : ".", level.key);
  }
  return where;
}

bool JsonRows::NextRow() {
  while (!error_ && (framing_ == Framing::kLines ? TakeLine(row_) : TakeObject(row_))) {
    parser_->depth = 0;
    if (skips_other_values_ && row_[0] != '{') {
      if (BeginDocument(row_) && IsOtherValue()) {
        continue;
      }
      return Fail("the line is not valid JSON");
    }
    return BeginObject(row_);
  }
  return false;
}

bool JsonRows::BeginAgain() {
  parser_->depth = 0;
  return BeginObject(row_);
}

bool JsonRows::TakeLine(std::string_view& row) {
  while (!rest_.empty()) {
    const std::size_t end = rest_.find('\n');
    row = rest_.substr(0, end);
    rest_.remove_prefix(std::min(rest_.size(), row.size() + 1));
    ++line_;
    if (const std::size_t first = row.find_first_not_of(kBlank); first != row.npos) {
      row.remove_prefix(first);
      if (row.size() > kMaxLine) {
        return Fail(fmt::format("the line is longer than {} bytes", kMaxLine));
      }
      return true;
    }
  }
  return false;
}

bool JsonRows::TakeObject(std::string_view& row) {
  const std::size_t first = std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size());
  line_ += CountLines(rest_.substr(0, first));
  rest_.remove_prefix(first);
  if (rest_.empty()) {
    return false;
  }
  line_ += lines_in_row_;
  row = rest_[0] == '{' ? rest_.substr(0, ObjectBytes(rest_)) : rest_;
  if (row.size() > kMaxObject) {
    return Fail(fmt::format("the object is longer than {} bytes", kMaxObject));
  }
  lines_in_row_ = CountLines(row);
  rest_.remove_prefix(row.size());
  return true;
}

// Starts the parser on the text of one row.
bool JsonRows::BeginDocument(std::string_view line) {
  ondemand::parser& parser = parser_->parser;
  if (parser.capacity() < line.size() && parser.allocate(std::bit_ceil(std::max<std::size_t>(
                                             line.size(), 1 << 14))) != simdjson::SUCCESS) {
    return Fail("the line needs more memory than there is");
  }
  const auto error =
      parser.iterate(line.data(), line.size(), line.size() + simdjson::SIMDJSON_PADDING)
          .get(parser_->document);
  if (error == simdjson::UTF8_ERROR) {
    return Fail("the line is not valid UTF-8");
  }
  return error == simdjson::SUCCESS;
}

bool JsonRows::BeginObject(std::string_view line) {
  const bool begun = BeginDocument(line);
  if (error_) {
    return false;
  }
  if (line[0] != '{') {
    return Fail(line[0] == '[' ? "the line is a JSON array; one JSON object per line is needed"
                               : "the line is not a JSON object");
  }
  ondemand::object object;
  if (!begun || parser_->document.get_object().get(object) != simdjson::SUCCESS ||
      !parser_->BeginMembers(object)) {
    parser_->depth = 0;
    return Fail("the line is not valid JSON");
  }
  return true;
}

// True when the row is one valid list, string, number or literal.
bool JsonRows::IsOtherValue() {
  ondemand::document& document = parser_->document;
  auto type = ondemand::json_type::null;
  if (document.type().get(type) != simdjson::SUCCESS) {
    return false;
  }
  if (type == ondemand::json_type::array) {
    ondemand::array list;
    if (document.get_array().get(list) != simdjson::SUCCESS || !CheckElements(list, 0)) {
      return false;
    }
  } else {
    std::string_view token;
    if (document.raw_json_token().get(token) != simdjson::SUCCESS) {
      return false;
    }
    token = token.substr(0, token.find_last_not_of(kBlank) + 1);
    return IsScalar(token) && token.size() == row_.find_last_not_of(kBlank) + 1;
  }
  return document.current_location().error() == simdjson::OUT_OF_BOUNDS;
}

bool JsonRows::NextMember() {
  if (error_) {
    return false;
  }
  Level& level = parser_->Top();
  if (!level.first) {
    ++level.member;
  }
  level.first = false;
  if (level.member != level.member_end) {
    return ReadKey();
  }
  if (parser_->depth == 1) {
    return EndObject();
  }
  --parser_->depth;
  return false;
}

bool JsonRows::NextElement() {
  if (error_) {
    return false;
  }
  Level& level = parser_->Top();
  if (!level.first) {
    ++level.element;
    ++level.index;
  }
  level.first = false;
  if (level.element == level.element_end) {
    --parser_->depth;
    return false;
  }
  if ((*level.element).get(parser_->value) != simdjson::SUCCESS) {
    return Fail("the line is not valid JSON");
  }
  return true;
}

bool JsonRows::EnterObject(bool& entered) {
  entered = false;
  ondemand::object object;
  if (parser_->value.get_object().get(object) != simdjson::SUCCESS) {
    return Token(parser_->value) == "null" || FailMember("must be an object");
  }
  parser_->Top().key = key_;
  entered = true;
  return parser_->BeginMembers(object) || Fail("the line is not valid JSON");
}

bool JsonRows::EnterList(bool& entered) {
  entered = false;
  ondemand::array list;
  if (parser_->value.get_array().get(list) != simdjson::SUCCESS) {
    return Token(parser_->value) == "null" || FailMember("must be a list");
  }
  parser_->Top().key = key_;
  Level& level = parser_->Push(true);
  entered = true;
  return (list.begin().get(level.element) == simdjson::SUCCESS &&
          list.end().get(level.element_end) == simdjson::SUCCESS) ||
         Fail("the line is not valid JSON");
}

bool JsonRows::EndObject() {
  if (parser_->document.current_location().error() != simdjson::OUT_OF_BOUNDS) {
    Fail("the line is not valid JSON, or more text follows its object");
  }
  return false;
}

bool JsonRows::ReadKey() {
  ondemand::field field;
  ondemand::raw_json_string raw;
  if ((*parser_->Top().member).get(field) != simdjson::SUCCESS) {
    return Fail("the line is not valid JSON");
  }
  raw = field.key();
  const char* const begin = raw.raw();
  const char* end = begin;
  while (*end != '"' && *end != '\\') {
    ++end;
  }
  key_ = {begin, static_cast<std::size_t>(end - begin)};
  if (*end == '\\' && field.unescaped_key().get(key_) != simdjson::SUCCESS) {
    return Fail("the line is not valid JSON");
  }
  parser_->value = std::move(field).value();
  return true;
}

bool JsonRows::ReadUnsigned(std::uint64_t max, std::optional<std::uint64_t>& out) {
  out.reset();
  std::uint64_t number = 0;
  if (parser_->value.get_uint64().get(number) == simdjson::SUCCESS) {
    if (number > max) {
      return FailMember(fmt::format("must be at most {}, got {}", max, number));
    }
    out = number;
    return true;
  }
  return Token(parser_->value) == "null" || FailMember("must be a whole number of at least 0");
}

bool JsonRows::ReadSigned32(std::optional<std::int32_t>& out) {
  out.reset();
  using Limits = std::numeric_limits<std::int32_t>;
  std::int64_t number = 0;
  if (parser_->value.get_int64().get(number) == simdjson::SUCCESS && number >= Limits::min() &&
      number <= Limits::max()) {
    out = static_cast<std::int32_t>(number);
    return true;
  }
  return Token(parser_->value) == "null" ||
         FailMember(
             fmt::format("must be a whole number from {} to {}", Limits::min(), Limits::max()));
}

bool JsonRows::ReadDecimal(std::optional<double>& out) {
  const std::string_view token = Token(parser_->value);
  out = ParseTraceDecimal(token);
  return out.has_value() || token == "null" || FailMember("must be a number");
}

bool JsonRows::ReadString(std::optional<std::string_view>& out) {
  out.reset();
  std::string_view text;
  if (parser_->value.get_string().get(text) == simdjson::SUCCESS) {
    out = text;
    return true;
  }
  return Token(parser_->value) == "null" || FailMember("must be a string");
}

bool JsonRows::ReadString(std::optional<std::string>& out) {
  std::optional<std::string_view> text;
  if (!ReadString(text)) {
    return false;
  }
  out = text ? std::optional<std::string>(*text) : std::nullopt;
  return true;
}

bool JsonRows::ReadUnsignedList(std::uint64_t max, UnsignedList& out) {
  out.Clear();
  ondemand::array array;
  if (parser_->value.get_array().get(array) != simdjson::SUCCESS) {
    return Token(parser_->value) == "null" || FailMember("must be a list of whole numbers");
  }
  std::string_view text;
  if (array.raw_json().get(text) != simdjson::SUCCESS ||
      ::dynosim::workload::ReadUnsignedList(text.data(), max, out) == nullptr) {
    out.Clear();
    return FailMember(fmt::format("must be a list of whole numbers from 0 to {}", max));
  }
  return true;
}

void JsonRows::TakeRow(std::size_t bytes) {
  rest_.remove_prefix(bytes);
  ++line_;
}

bool JsonRows::Skip() { return CheckValue(parser_->value, 0) || FailMember("is not valid JSON"); }

}  // namespace dynosim::workload
