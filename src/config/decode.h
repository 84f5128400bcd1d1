// SPDX-License-Identifier: Apache-2.0
// Decoder: reads one JSON object into a settings struct. The struct's owner writes one function
// that names every field once, with its rule; the initial values of the struct are the defaults.
// Unknown and duplicate names, wrong types and values out of range are errors that give the dotted
// path, the value and what is allowed. The first error is kept; later calls do nothing.
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
// Both ends included.
struct NumberRange {
  double min = -std::numeric_limits<double>::max();
  double max = std::numeric_limits<double>::max();
};
inline constexpr IntegerRange kPositive{.min = 1};
inline constexpr NumberRange kNonNegative{.min = 0.0};
inline constexpr NumberRange kShare{.min = 0.0, .max = 1.0};

template <class E>
struct Choice {
  constexpr Choice(std::string_view choice_name, E choice_value)
      : name(choice_name), value(choice_value) {}
  std::string_view name;
  E value;
};

class Decoder {
 public:
  // `value` must outlive the decoder. `path` is the dotted path of the object, empty at the top.
  Decoder(const Json& value, std::string path);

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
    if (const auto read = ReadInteger(name, range, false)) {
      out = static_cast<T>(*read);
    }
  }
  template <class T>
    requires(std::is_unsigned_v<T> && !std::is_same_v<T, bool>)
  void Field(std::string_view name, std::optional<T>& out, IntegerRange range = {}) {
    range.max = std::min<std::uint64_t>(range.max, std::numeric_limits<T>::max());
    if (const auto read = ReadInteger(name, range, true)) {
      out = static_cast<T>(*read);
    }
  }
  // Null gives `unlimited`.
  void Limit(std::string_view name, std::uint64_t& out, IntegerRange range,
             std::uint64_t unlimited);
  template <class E>
  void Field(std::string_view name, E& out,
             std::type_identity_t<std::span<const Choice<E>>> choices) {
    std::vector<std::string_view> names;
    for (const Choice<E>& choice : choices) {
      names.push_back(choice.name);
    }
    if (const auto index = ReadChoice(name, names)) {
      out = choices[*index].value;
    }
  }
  // A nested object; absent leaves the defaults, null is an error.
  void Object(std::string_view name, const std::function<void(Decoder&)>& fields);
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
  const Json* Declare(std::string_view name);
  std::optional<std::uint64_t> ReadInteger(std::string_view name, IntegerRange range,
                                           bool nullable);
  std::optional<double> ReadNumber(std::string_view name, NumberRange range, bool nullable);
  std::optional<std::size_t> ReadChoice(std::string_view name,
                                        std::span<const std::string_view> choices);
  void CheckUnknown();

  const Json* value_;
  std::string path_;
  std::vector<std::string_view> known_;
  std::vector<std::string_view> refused_;
  std::optional<std::string> error_;
};

// Short text of a value for an error message: `"abc"`, `3`, `null`, `an object`.
std::string Shown(const Json& value);

// The name of `known` nearest to `name` by edits, empty when none is near.
std::string_view NearestName(std::string_view name, std::span<const std::string_view> known);

}  // namespace dynosim::config
