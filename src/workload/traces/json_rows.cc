// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/json_rows.h"

#include <algorithm>
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
#include <vector>

#include <fmt/format.h>
#include <simdjson.h>

#include "base/numeric.h"
#include "base/result.h"
#include "base/text_file.h"
#include "workload/traces/unsigned_list.h"

namespace dynosim::workload {

namespace ondemand = simdjson::ondemand;

struct JsonRows::Parser {
  ondemand::parser parser;
  ondemand::document document;
  ondemand::object object;
  ondemand::object_iterator at;
  ondemand::object_iterator end;
  ondemand::value value;
  bool first = true;
};

namespace {

static_assert(TextFile::kPadding >= simdjson::SIMDJSON_PADDING);

// A line of this size holds about ten million block ids.
constexpr std::size_t kMaxLine = std::size_t{128} << 20;
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

bool CheckArray(ondemand::value& value, int depth) {
  ondemand::array array;
  if (value.get_array().get(array) != simdjson::SUCCESS) {
    return false;
  }
  for (auto element : array) {
    ondemand::value inner;
    if (element.get(inner) != simdjson::SUCCESS || !CheckValue(inner, depth + 1)) {
      return false;
    }
  }
  return true;
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
    case '"':
      return IsString(token);
    default:
      return token == "true" || token == "false" || token == "null" || IsNumber(token);
  }
}

}  // namespace

JsonRows::JsonRows(std::string path, std::string_view text)
    : path_(std::move(path)), rest_(text), parser_(std::make_unique<Parser>()) {}

JsonRows::~JsonRows() = default;

bool JsonRows::Fail(std::string message) {
  if (!error_) {
    error_ = Error{.kind = ErrorKind::kFailed,
                   .where = fmt::format("{}:{}", path_, line_),
                   .message = std::move(message)};
  }
  return false;
}

bool JsonRows::FailMember(std::string_view message) {
  return Fail(fmt::format("{} {}", key_, message));
}

bool JsonRows::NextRow() {
  while (!error_ && !rest_.empty()) {
    const std::size_t end = rest_.find('\n');
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(rest_.size(), line.size() + 1));
    ++line_;
    if (const std::size_t first = line.find_first_not_of(kBlank); first != line.npos) {
      line.remove_prefix(first);
      return BeginObject(line);
    }
  }
  return false;
}

bool JsonRows::BeginObject(std::string_view line) {
  if (line.size() > kMaxLine) {
    return Fail(fmt::format("the line is longer than {} bytes", kMaxLine));
  }
  ondemand::parser& parser = parser_->parser;
  if (parser.capacity() < line.size() && parser.allocate(std::bit_ceil(std::max<std::size_t>(
                                             line.size(), 1 << 14))) != simdjson::SUCCESS) {
    return Fail("the line needs more memory than there is");
  }
  auto error = parser.iterate(line.data(), line.size(), line.size() + simdjson::SIMDJSON_PADDING)
                   .get(parser_->document);
  if (error == simdjson::UTF8_ERROR) {
    return Fail("the line is not valid UTF-8");
  }
  if (line[0] != '{') {
    return Fail(line[0] == '[' ? "the line is a JSON array; one JSON object per line is needed"
                               : "the line is not a JSON object");
  }
  if (error == simdjson::SUCCESS) {
    error = parser_->document.get_object().get(parser_->object);
  }
  if (error == simdjson::SUCCESS) {
    error = parser_->object.begin().get(parser_->at);
  }
  if (error == simdjson::SUCCESS) {
    error = parser_->object.end().get(parser_->end);
  }
  if (error != simdjson::SUCCESS) {
    return Fail("the line is not valid JSON");
  }
  parser_->first = true;
  return true;
}

bool JsonRows::NextMember() {
  if (error_) {
    return false;
  }
  if (!parser_->first) {
    ++parser_->at;
  }
  parser_->first = false;
  return parser_->at == parser_->end ? EndObject() : ReadKey();
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
  if ((*parser_->at).get(field) != simdjson::SUCCESS) {
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
