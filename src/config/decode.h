// SPDX-License-Identifier: Apache-2.0
// Decoder: reads one JSON object into a settings struct. The struct's owner writes one function
// that names every field once, with its rule; the initial values of the struct are the defaults.
// Unknown and duplicate names, wrong types and values out of range are errors that give the dotted
// path, the value and what is allowed. The first error is kept; later calls do nothing.
//
// The same function also describes its fields: DescribeFields runs it without a document and gives
// the JSON schema of the object.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace dynosim::config {

struct IntegerRange {
  std::uint64_t min = 0;
  std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
};
// Both ends included, unless `above_min` leaves the lower one out.
struct NumberRange {
  double min = -std::numeric_limits<double>::max();
  double max = std::numeric_limits<double>::max();
  bool above_min = false;
};
inline constexpr IntegerRange kPositive{.min = 1};
inline constexpr NumberRange kNonNegative{.min = 0.0};
inline constexpr NumberRange kAboveZero{.min = 0.0, .above_min = true};
inline constexpr NumberRange kShare{.min = 0.0, .max = 1.0};

template <class E>
struct Choice {
  constexpr Choice(std::string_view choice_name, E choice_value)
      : name(choice_name), value(choice_value) {}
  std::string_view name;
  E value;
};

class Decoder;
struct ObjectSchema;  // config/schema.h

// One form of a tagged object, chosen by the value of its tag.
struct Variant {
  std::string_view name;
  std::string_view doc;
  std::function<void(Decoder&)> fields;
};

class Decoder {
 public:
  // `value` must outlive the decoder. `path` is the dotted path of the object, empty at the top.
  Decoder(const Json& value, std::string path);

  // What the next declared field means, for the schema.
  Decoder& Doc(std::string_view text) {
    doc_ = text;
    return *this;
  }

  void Field(std::string_view name, bool& out);
  void Field(std::string_view name, double& out, NumberRange range);
  // Null leaves the value absent.
  void Field(std::string_view name, std::optional<double>& out, NumberRange range);
  void Field(std::string_view name, std::optional<std::string>& out);
  void Field(std::string_view name, std::string& out);
  template <class T>
    requires(std::is_unsigned_v<T> && !std::is_same_v<T, bool>)
  void Field(std::string_view name, T& out, IntegerRange range = {}) {
    range.max = std::min<std::uint64_t>(range.max, std::numeric_limits<T>::max());
    if (const auto read = ReadInteger(name, range, {}, std::uint64_t{out})) {
      out = static_cast<T>(*read);
    }
  }
  template <class T>
    requires(std::is_unsigned_v<T> && !std::is_same_v<T, bool>)
  void Field(std::string_view name, std::optional<T>& out, IntegerRange range = {}) {
    range.max = std::min<std::uint64_t>(range.max, std::numeric_limits<T>::max());
    const std::optional<std::uint64_t> initial = out;
    if (const auto read = ReadInteger(name, range, "null", initial ? Json(*initial) : Json())) {
      out = static_cast<T>(*read);
    }
  }
  // An integer or `keyword`, which leaves the value absent.
  void Field(std::string_view name, std::optional<std::uint64_t>& out, IntegerRange range,
             std::string_view keyword);
  // Null gives `unlimited`.
  void Limit(std::string_view name, std::uint64_t& out, IntegerRange range,
             std::uint64_t unlimited);
  template <class E>
  void Field(std::string_view name, E& out,
             std::type_identity_t<std::span<const Choice<E>>> choices) {
    std::vector<std::string_view> names;
    std::string_view initial;
    for (const Choice<E>& choice : choices) {
      names.push_back(choice.name);
      initial = choice.value == out ? choice.name : initial;
    }
    if (const auto index = ReadChoice(name, names, initial)) {
      out = choices[*index].value;
    }
  }
  // One of a list of names, kept as text.
  void Field(std::string_view name, std::string& out, std::span<const std::string_view> names);
  // A list of strings with at least one entry.
  void Field(std::string_view name, std::vector<std::string>& out);
  // A nested object; absent leaves the defaults, null is an error.
  void Object(std::string_view name, const std::function<void(Decoder&)>& fields);
  // A nested object whose fields are read only when it is there; true then. Null is an error.
  bool ObjectIfPresent(std::string_view name, const std::function<void(Decoder&)>& fields);
  // The same, but null leaves it out as well.
  bool OptionalObject(std::string_view name, const std::function<void(Decoder&)>& fields);
  // The member `tag` names the form of this object, the first one when it is absent; then the
  // fields of that form are read. A field of another form is an error that says whose it is.
  // Returns the index of the form. Call it before any other field.
  std::size_t Variants(std::string_view tag, std::span<const Variant> variants);
  // Any value, unchecked; null counts as present.
  const Json* Raw(std::string_view name);
  // A field that must be present.
  void Require(std::string_view name);
  // A name that is refused with its reason when it is present and not null.
  void Refuse(std::string_view name, std::string_view reason);

  // True when the object has a member of this name; does not declare it.
  bool Has(std::string_view name) const { return value_->Find(name) != nullptr; }
  // Sets an error at a field ("" for the object itself) unless there is one already.
  void Fail(std::string_view name, std::string message);
  bool failed() const { return error_.has_value(); }
  // The names declared so far.
  std::span<const std::string_view> names() const { return known_; }
  std::string PathOf(std::string_view name) const;

  // Reports the first error, or the first name that no call has declared. The error has the path in
  // its message; `where` names the flag or file.
  Result<void> Finish(std::string_view where);
  // The same for objects that tolerate names nobody declared.
  Result<void> FinishOpen(std::string_view where) const;

 private:
  friend Json DescribeFields(const std::function<void(Decoder&)>& fields);

  const Json* Declare(std::string_view name);
  // `keyword` is a value that stands for absence: "null", another word, or empty for none.
  std::optional<std::uint64_t> ReadInteger(std::string_view name, IntegerRange range,
                                           std::string_view keyword, const Json& initial);
  std::optional<double> ReadNumber(std::string_view name, NumberRange range, bool nullable,
                                   const Json& initial);
  std::optional<std::size_t> ReadChoice(std::string_view name,
                                        std::span<const std::string_view> choices,
                                        std::string_view initial);
  enum class Presence : std::uint8_t { kDefaults, kOptional, kNullable };
  bool ReadObject(std::string_view name, const std::function<void(Decoder&)>& fields,
                  Presence presence);
  void CheckForms(std::string_view tag, std::span<const Variant> variants, std::size_t chosen);
  void CheckUnknown();
  // Keeps the description of a field while a schema is made (config/schema.cc).
  void Record(std::string_view name, Json type, const Json& initial);
  void RecordVariants(std::string_view tag, std::span<const Variant> variants);

  const Json* value_;
  std::string path_;
  std::vector<std::string_view> known_;
  std::vector<std::string_view> refused_;
  std::optional<std::string> error_;
  std::string_view doc_;
  ObjectSchema* schema_ = nullptr;  // set while a schema is made; borrowed
};

// JSON schema (draft 2020-12) of the object that `fields` reads, with defaults and descriptions.
Json DescribeFields(const std::function<void(Decoder&)>& fields);

// Short text of a value for an error message: `"abc"`, `3`, `null`, `an object`.
std::string Shown(const Json& value);

// The name of `known` nearest to `name` by edits, empty when none is near.
std::string_view NearestName(std::string_view name, std::span<const std::string_view> known);

}  // namespace dynosim::config
