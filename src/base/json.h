// SPDX-License-Identifier: Apache-2.0
// Json: an ordered JSON value for configuration and reports, and the only door to the JSON library
// (base/json.cc). Objects keep insertion order. Numbers keep their kind: signed, unsigned, double.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace dynosim {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;                                      // null
  Json(std::nullptr_t) {}                                // NOLINT(google-explicit-constructor)
  Json(bool v) : value_(v) {}                            // NOLINT(google-explicit-constructor)
  Json(std::int64_t v) : value_(v) {}                    // NOLINT(google-explicit-constructor)
  Json(std::uint64_t v) : value_(v) {}                   // NOLINT(google-explicit-constructor)
  Json(int v) : value_(static_cast<std::int64_t>(v)) {}  // NOLINT(google-explicit-constructor)
  // NOLINTNEXTLINE(google-explicit-constructor)
  Json(std::uint32_t v) : value_(static_cast<std::uint64_t>(v)) {}
  Json(double v) : value_(v) {}                         // NOLINT(google-explicit-constructor)
  Json(const char* v) : value_(std::string(v)) {}       // NOLINT(google-explicit-constructor)
  Json(std::string v) : value_(std::move(v)) {}         // NOLINT(google-explicit-constructor)
  Json(std::string_view v) : value_(std::string(v)) {}  // NOLINT(google-explicit-constructor)
  Json(Array v) : value_(std::move(v)) {}               // NOLINT(google-explicit-constructor)
  Json(Object v) : value_(std::move(v)) {}              // NOLINT(google-explicit-constructor)

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const {
    return std::holds_alternative<std::int64_t>(value_) ||
           std::holds_alternative<std::uint64_t>(value_);
  }
  bool is_double() const { return std::holds_alternative<double>(value_); }
  bool is_number() const { return is_integer() || is_double(); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  const auto& value() const { return value_; }
  bool boolean() const { return std::get<bool>(value_); }
  double number() const;  // any number as double
  const std::string& string() const { return std::get<std::string>(value_); }
  const Array& array() const { return std::get<Array>(value_); }
  Array& array() { return std::get<Array>(value_); }
  const Object& object() const { return std::get<Object>(value_); }
  Object& object() { return std::get<Object>(value_); }

  // Member of an object, nullptr when absent.
  const Json* Find(std::string_view key) const;
  // Appends a member (the caller guarantees that the key is new). Makes a null value an object.
  void Add(std::string key, Json value);

  friend bool operator==(const Json&, const Json&) = default;

 private:
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array,
               Object>
      value_;
};

// Strict JSON; duplicate keys, trailing text, invalid UTF-8 and nesting over 256 levels are errors
// that name line and column.
Result<Json> ParseJson(std::string_view text, std::string where);

struct JsonStyle {
  int indent = 0;  // 0: compact
  bool sort_keys = false;
};
// Doubles print as the shortest text that reads back to the same bits, with ".0" for whole numbers;
// infinities and NaN print as null.
std::string DumpJson(const Json& value, JsonStyle style = {});
// Text of one double under the same rule.
void AppendJsonNumber(std::string& out, double value);
// Quoted and escaped string.
void AppendJsonString(std::string& out, std::string_view text);

}  // namespace dynosim
