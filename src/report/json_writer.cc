// SPDX-License-Identifier: Apache-2.0
// The layout is that of DumpJson; numbers and strings are written by the same functions.
#include "report/json_writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/json.h"

namespace dynosim::report {
namespace {

constexpr std::size_t kFlushSize = 1U << 16U;

}  // namespace

JsonWriter::JsonWriter(JsonStyle style, Sink sink) : style_(style), sink_(std::move(sink)) {
  buffer_.reserve(2 * kFlushSize);
}

void JsonWriter::Key(std::string_view key) {
  BeforeValue();
  AppendJsonString(buffer_, key);
  buffer_ += style_.indent > 0 ? ": " : ":";
  after_key_ = true;
}

void JsonWriter::Null() {
  BeforeValue();
  buffer_ += "null";
}

void JsonWriter::Bool(bool value) {
  BeforeValue();
  buffer_ += value ? "true" : "false";
}

void JsonWriter::Integer(std::uint64_t value) {
  BeforeValue();
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  buffer_.append(digits.data(), end);
}

void JsonWriter::Number(double value) {
  BeforeValue();
  AppendJsonNumber(buffer_, value);
}

void JsonWriter::String(std::string_view value) {
  BeforeValue();
  AppendJsonString(buffer_, value);
}

void JsonWriter::IntegerOrNull(const std::optional<std::uint64_t>& value) {
  if (value) {
    Integer(*value);
  } else {
    Null();
  }
}

void JsonWriter::NumberOrNull(const std::optional<double>& value) {
  if (value) {
    Number(*value);
  } else {
    Null();
  }
}

void JsonWriter::Value(const Json& value) {
  if (value.is_object()) {
    Object(value.object());
  } else if (value.is_array()) {
    BeginArray();
    for (const Json& item : value.array()) {
      Value(item);
    }
    EndArray();
  } else {
    BeforeValue();
    buffer_ += DumpJson(value);
  }
}

void JsonWriter::EndLine() {
  DYNO_CHECK(has_members_.empty());
  buffer_ += '\n';
}

void JsonWriter::Flush() {
  sink_(buffer_);
  buffer_.clear();
}

void JsonWriter::Open(char bracket) {
  BeforeValue();
  buffer_ += bracket;
  has_members_.push_back(false);
}

void JsonWriter::Close(char bracket) {
  DYNO_CHECK(!has_members_.empty() && !after_key_);
  const bool had_members = has_members_.back();
  has_members_.pop_back();
  if (had_members) {
    BreakLine();
  }
  buffer_ += bracket;
}

void JsonWriter::BeforeValue() {
  if (buffer_.size() >= kFlushSize) {
    Flush();
  }
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_members_.empty()) {
    return;
  }
  if (has_members_.back()) {
    buffer_ += ',';
  }
  has_members_.back() = true;
  BreakLine();
}

void JsonWriter::BreakLine() {
  if (style_.indent > 0) {
    buffer_ += '\n';
    buffer_.append(static_cast<std::size_t>(style_.indent) * has_members_.size(), ' ');
  }
}

void JsonWriter::Object(const Json::Object& members) {
  std::vector<const Json::Member*> order;
  order.reserve(members.size());
  for (const Json::Member& member : members) {
    order.push_back(&member);
  }
  if (style_.sort_keys) {
    std::ranges::sort(
        order, {}, [](const Json::Member* member) -> const std::string& { return member->first; });
  }
  BeginObject();
  for (const Json::Member* member : order) {
    Key(member->first);
    Value(member->second);
  }
  EndObject();
}

}  // namespace dynosim::report
