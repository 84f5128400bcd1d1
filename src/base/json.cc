// SPDX-License-Identifier: Apache-2.0
// The only place that includes the JSON library: its streaming parser feeds a builder that keeps
// member order, rejects duplicate keys and bounds the nesting. Writing is done here without it.
#include "base/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/result.h"

namespace dynosim {
namespace {

constexpr std::size_t kMaxDepth = 256;
// Objects with fewer members are searched linearly for duplicate keys.
constexpr std::size_t kLinearKeys = 16;

// Walks the text for the parser and tells how far it has read.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    ++at_;
    *reached_ = at_;
    return *this;
  }
  Cursor operator++(int) {
    Cursor before = *this;
    ++*this;
    return before;
  }
  friend bool operator!=(const Cursor& a, const Cursor& b) { return a.at_ != b.at_; }

 private:
  const char* at_;
  const char** reached_;
};

// The library's message without its own prefix: "... line 1, column 2: syntax error ...".
std::string PlainMessage(std::string_view what) {
  for (const std::string_view mark : {": syntax error", ": number overflow"}) {
    if (const auto at = what.find(mark); at != std::string_view::npos) {
      return std::string(what.substr(at + 2));
    }
  }
  const auto at = what.find("] ");
  return std::string(at == std::string_view::npos ? what : what.substr(at + 2));
}

// Builds the value; every handler returns false to stop after setting the message.
class Builder {
 public:
  using Library = nlohmann::json;

  bool null() { return Put(Json()); }
  bool boolean(bool v) { return Put(Json(v)); }
  bool number_integer(std::int64_t v) { return Put(Json(v)); }
  bool number_unsigned(std::uint64_t v) { return Put(Json(v)); }
  bool number_float(double v, const std::string& text) {
    if (!std::isfinite(v)) {
      return Fail("number " + text + " is out of range");
    }
    return Put(Json(v));
  }
  bool string(std::string& v) { return Put(Json(std::move(v))); }
  bool binary(Library::binary_t&) { return Fail("binary values are not JSON"); }

  bool start_object(std::size_t) { return Open(Json(Json::Object())); }
  bool key(std::string& name) {
    Level& level = levels_.back();
    if (IsDuplicate(level, name)) {
      return Fail("duplicate key \"" + name + "\"");
    }
    level.container->object().emplace_back().first = std::move(name);
    return true;
  }
  bool end_object() { return Close(); }
  bool start_array(std::size_t) { return Open(Json(Json::Array())); }
  bool end_array() { return Close(); }
  bool parse_error(std::size_t, const std::string&, const Library::exception& error) {
    return Fail(PlainMessage(error.what()));
  }

  Json& root() { return root_; }
  const std::string& message() const { return message_; }

 private:
  struct Level {
    Json* container = nullptr;
    std::optional<std::unordered_set<std::string>> keys;  // only for large objects
  };

  static bool IsDuplicate(Level& level, const std::string& name) {
    const Json::Object& members = level.container->object();
    if (members.size() < kLinearKeys) {
      return level.container->Find(name) != nullptr;
    }
    if (!level.keys) {
      level.keys.emplace();
      for (const Json::Member& member : members) {
        level.keys->insert(member.first);
      }
    }
    return !level.keys->insert(name).second;
  }

  bool Fail(std::string message) {
    message_ = std::move(message);
    return false;
  }

  // Stores the value where the innermost open container expects it; returns its address.
  Json* Store(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& container = *levels_.back().container;
    if (container.is_array()) {
      return &container.array().emplace_back(std::move(value));
    }
    Json& slot = container.object().back().second;
    slot = std::move(value);
    return &slot;
  }
  bool Put(Json value) {
    Store(std::move(value));
    return true;
  }
  // Addresses stay valid: a container does not grow while one of its children is open.
  bool Open(Json value) {
    if (levels_.size() == kMaxDepth) {
      return Fail("nested deeper than " + std::to_string(kMaxDepth) + " levels");
    }
    Json* stored = Store(std::move(value));
    levels_.push_back({.container = stored, .keys = std::nullopt});
    return true;
  }
  bool Close() {
    levels_.pop_back();
    return true;
  }

  Json root_;
  std::vector<Level> levels_;
  std::string message_;
};

std::string LineAndColumn(std::string_view text, std::size_t offset) {
  std::size_t line = 1;
  std::size_t column = 1;
  for (const char c : text.substr(0, offset)) {
    if (c == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
  }
  return "line " + std::to_string(line) + ", column " + std::to_string(column > 1 ? column - 1 : 1);
}

class Writer {
 public:
  Writer(std::string& out, JsonStyle style) : out_(out), style_(style) {}

  void Write(const Json& value, int depth) {
    std::visit([&](const auto& v) { WriteValue(v, depth); }, value.value());
  }

 private:
  void WriteValue(std::monostate, int) { out_ += "null"; }
  void WriteValue(bool v, int) { out_ += v ? "true" : "false"; }
  void WriteValue(std::int64_t v, int) { WriteInteger(v); }
  void WriteValue(std::uint64_t v, int) { WriteInteger(v); }
  void WriteValue(double v, int) { AppendJsonNumber(out_, v); }
  void WriteValue(const std::string& v, int) { AppendJsonString(out_, v); }
  void WriteValue(const Json::Array& items, int depth) {
    out_ += '[';
    bool first = true;
    for (const Json& item : items) {
      Separate(first, depth + 1);
      Write(item, depth + 1);
    }
    Finish(first, depth);
    out_ += ']';
  }
  void WriteValue(const Json::Object& members, int depth) {
    out_ += '{';
    bool first = true;
    if (style_.sort_keys) {
      std::vector<const Json::Member*> sorted;
      sorted.reserve(members.size());
      for (const Json::Member& member : members) {
        sorted.push_back(&member);
      }
      std::ranges::sort(sorted, {},
                        [](const Json::Member* m) -> const std::string& { return m->first; });
      for (const Json::Member* member : sorted) {
        WriteMember(*member, first, depth + 1);
      }
    } else {
      for (const Json::Member& member : members) {
        WriteMember(member, first, depth + 1);
      }
    }
    Finish(first, depth);
    out_ += '}';
  }
  void WriteMember(const Json::Member& member, bool& first, int depth) {
    Separate(first, depth);
    AppendJsonString(out_, member.first);
    out_ += style_.indent > 0 ? ": " : ":";
    Write(member.second, depth);
  }
  template <class T>
  void WriteInteger(T v) {
    std::array<char, 24> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), v).ptr;
    out_.append(buffer.data(), end);
  }
  void Separate(bool& first, int depth) {
    if (!first) {
      out_ += ',';
    }
    first = false;
    NewLine(depth);
  }
  void Finish(bool empty, int depth) {
    if (!empty) {
      NewLine(depth);
    }
  }
  void NewLine(int depth) {
    if (style_.indent > 0) {
      out_ += '\n';
      out_.append(static_cast<std::size_t>(style_.indent) * static_cast<std::size_t>(depth), ' ');
    }
  }

  std::string& out_;
  JsonStyle style_;
};

}  // namespace

double Json::number() const {
  if (const auto* v = std::get_if<std::int64_t>(&value_)) {
    return static_cast<double>(*v);
  }
  if (const auto* v = std::get_if<std::uint64_t>(&value_)) {
    return static_cast<double>(*v);
  }
  DYNO_CHECK(is_double());
  return std::get<double>(value_);
}

const Json* Json::Find(std::string_view key) const {
  const auto* members = std::get_if<Object>(&value_);
  if (members == nullptr) {
    return nullptr;
  }
  for (const Member& member : *members) {
    if (member.first == key) {
      return &member.second;
    }
  }
  return nullptr;
}

void Json::Add(std::string key, Json value) {
  if (is_null()) {
    value_ = Object();
  }
  object().emplace_back(std::move(key), std::move(value));
}

Result<Json> ParseJson(std::string_view text, std::string where) {
  Builder builder;
  const std::span<const char> bytes(text);
  const char* reached = bytes.data();
  const Cursor begin(bytes.data(), &reached);
  const Cursor end(bytes.data() + bytes.size(), &reached);
  bool parsed = false;
  try {
    parsed = nlohmann::json::sax_parse(begin, end, &builder);
  } catch (const nlohmann::json::exception& error) {
    return UsageError(std::move(where), PlainMessage(error.what()));
  }
  if (!parsed) {
    const auto offset = static_cast<std::size_t>(reached - text.data());
    return UsageError(std::move(where), LineAndColumn(text, offset) + ": " + builder.message());
  }
  return std::move(builder.root());
}

std::string DumpJson(const Json& value, JsonStyle style) {
  std::string out;
  Writer(out, style).Write(value, 0);
  return out;
}

// The shortest digits come from to_chars; the layout is fixed notation for 1e-5 < |v| < 1e15 and
// scientific notation with a signed exponent of at least two digits elsewhere.
void AppendJsonNumber(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  if (value == 0.0) {
    out += std::signbit(value) ? "-0.0" : "0.0";
    return;
  }
  std::array<char, 32> buffer{};
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::fabs(value),
                                     std::chars_format::scientific);
  const std::string_view text(buffer.data(), static_cast<std::size_t>(written.ptr - buffer.data()));
  const std::size_t e = text.find('e');
  std::string digits(1, text[0]);
  if (e > 2) {
    digits.append(text.substr(2, e - 2));
  }
  int exponent = 0;
  const std::size_t exponent_at = text[e + 1] == '+' ? e + 2 : e + 1;
  std::from_chars(text.data() + exponent_at, text.data() + text.size(), exponent);

  const int count = static_cast<int>(digits.size());
  const int point = exponent + 1;  // digits before the decimal point
  if (value < 0) {
    out += '-';
  }
  if (point >= count && point <= 15) {
    out += digits;
    out.append(static_cast<std::size_t>(point - count), '0');
    out += ".0";
  } else if (point > 0 && point <= 15) {
    out.append(digits, 0, static_cast<std::size_t>(point));
    out += '.';
    out.append(digits, static_cast<std::size_t>(point));
  } else if (point > -4 && point <= 0) {
    out += "0.";
    out.append(static_cast<std::size_t>(-point), '0');
    out += digits;
  } else {
    out += digits[0];
    if (count > 1) {
      out += '.';
      out.append(digits, 1);
    }
    out += 'e';
    out += text.substr(e + 1);  // to_chars writes the sign and at least two digits
  }
}

void AppendJsonString(std::string& out, std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += "\\u00";
          out += kHex[static_cast<unsigned char>(c) >> 4];
          out += kHex[static_cast<unsigned char>(c) & 0xF];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

}  // namespace dynosim
