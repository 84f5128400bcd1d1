// SPDX-License-Identifier: Apache-2.0
#include "config/yaml_scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/json.h"

namespace dynosim::config {
namespace {

constexpr std::array<std::string_view, 9> kTrue = {"yes",  "Yes", "YES", "true", "True",
                                                   "TRUE", "on",  "On",  "ON"};
constexpr std::array<std::string_view, 9> kFalse = {"no",    "No",  "NO",  "false", "False",
                                                    "FALSE", "off", "Off", "OFF"};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

template <std::size_t N>
bool IsOneOf(const std::array<std::string_view, N>& names, std::string_view text) {
  return !text.empty() && std::ranges::find(names, text) != names.end();
}

// Digits of a base without the underscores between them; empty when there is another character.
std::string Digits(std::string_view text, int base) {
  std::string digits;
  for (const char c : text) {
    const bool fits = base == 16 ? IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')
                                 : c >= '0' && c < '0' + base;
    if (fits) {
      digits += c;
    } else if (c != '_') {
      return "";
    }
  }
  return digits;
}

std::optional<Json> Integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) {
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.starts_with("0x")) {
    base = 16;
  } else if (text.starts_with("0b")) {
    base = 2;
  } else if (text.size() > 1 && text.starts_with('0')) {
    base = 8;
  }
  if (base == 16 || base == 2) {
    text.remove_prefix(2);
  }
  if (base == 10 && (text.empty() || !IsDigit(text.front()))) {
    return std::nullopt;
  }
  const std::string digits = Digits(text, base);
  if (digits.empty()) {
    return std::nullopt;
  }
  std::uint64_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (read.ec != std::errc()) {
    double large = 0.0;  // beyond 64 bits: still a number, no longer an integer
    if (base != 10 ||
        std::from_chars(digits.data(), digits.data() + digits.size(), large).ec != std::errc()) {
      return std::nullopt;
    }
    return negative ? -large : large;
  }
  if (!negative) {
    return value <= kLargest ? Json(static_cast<std::int64_t>(value)) : Json(value);
  }
  if (value > kLargest) {
    return -static_cast<double>(value);
  }
  return -static_cast<std::int64_t>(value);
}

std::optional<Json> Special(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) {
    text.remove_prefix(1);
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == ".inf" || text == ".Inf" || text == ".INF") {
    return negative ? -kInfinity : kInfinity;
  }
  if (!negative && (text == ".nan" || text == ".NaN" || text == ".NAN")) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return std::nullopt;
}

std::optional<Json> Number(std::string_view text) {
  if (auto special = Special(text)) {
    return special;
  }
  if (text.find_first_of(".eE") == std::string_view::npos) {
    return std::nullopt;  // 08: neither octal nor decimal
  }
  std::string digits(text);
  std::erase(digits, '_');
  if (digits.starts_with('+')) {
    digits.erase(0, 1);
  }
  const std::size_t first = digits.starts_with('-') ? 1 : 0;
  // Rules out inf, nan and hexadecimal, which from_chars would read.
  if (digits.size() <= first || !(IsDigit(digits[first]) || digits[first] == '.')) {
    return std::nullopt;
  }
  double value = 0.0;
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, value);
  if (read.ptr != end || read.ec == std::errc::invalid_argument) {
    return std::nullopt;
  }
  if (read.ec == std::errc::result_out_of_range) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

Json PlainScalar(std::string_view text) {
  if (IsOneOf(kTrue, text) || IsOneOf(kFalse, text)) {
    return IsOneOf(kTrue, text);
  }
  if (auto integer = Integer(text)) {
    return *integer;
  }
  if (auto number = Number(text)) {
    return *number;
  }
  return text;
}

std::optional<Json> TaggedScalar(std::string_view tag, std::string_view text) {
  if (tag == "str") {
    return text;
  }
  if (tag == "null") {
    return Json();
  }
  if (tag == "bool" && (IsOneOf(kTrue, text) || IsOneOf(kFalse, text))) {
    return IsOneOf(kTrue, text);
  }
  if (tag == "int") {
    return Integer(text);
  }
  if (tag == "float") {
    const auto whole = Integer(text);
    return whole ? Json(whole->number()) : Number(text);
  }
  return std::nullopt;
}

}  // namespace dynosim::config
