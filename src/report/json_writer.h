// SPDX-License-Identifier: Apache-2.0
// JsonWriter: JSON text written front to back, without a document in memory. It owns commas, line
// breaks and indentation; the caller owns the nesting. Full buffers go to the sink.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace dynosim::report {

class JsonWriter {
 public:
  using Sink = std::function<void(std::string_view)>;

  // Indent 0 writes compact text. With `sort_keys` Json objects and tables of fields (fields.h) are
  // written in key order.
  JsonWriter(JsonStyle style, Sink sink);
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;
  ~JsonWriter() = default;

  bool SortsKeys() const { return style_.sort_keys; }

  void BeginObject() { Open('{'); }
  void EndObject() { Close('}'); }
  void BeginArray() { Open('['); }
  void EndArray() { Close(']'); }
  void Key(std::string_view key);

  void Null();
  void Bool(bool value);
  void Integer(std::uint64_t value);
  void Number(double value);  // null when not finite
  void String(std::string_view value);
  void IntegerOrNull(const std::optional<std::uint64_t>& value);
  void NumberOrNull(const std::optional<double>& value);
  void Value(const Json& value);

  // Ends a top-level value with a line feed.
  void EndLine();
  // Hands the rest of the text to the sink.
  void Flush();

 private:
  void Open(char bracket);
  void Close(char bracket);
  void BeforeValue();
  void BreakLine();
  void Object(const Json::Object& members);

  JsonStyle style_;
  Sink sink_;
  std::string buffer_;
  std::vector<bool> has_members_;  // by nesting level
  bool after_key_ = false;
};

}  // namespace dynosim::report
