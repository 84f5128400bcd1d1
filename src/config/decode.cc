// SPDX-License-Identifier: Apache-2.0
// Reading of JSON objects into settings, and the wording of its errors.
#include "config/decode.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "config/schema.h"

namespace dynosim::config {
namespace {

constexpr std::size_t kShownLength = 60;

const Json& EmptyObject() {
  static const Json empty = Json::Object();
  return empty;
}

// "an integer >= 1", "an integer from 1 to 5", "a number >= 0", ...
std::string Allowed(std::string_view noun, bool has_min, const std::string& min, bool has_max,
                    const std::string& max) {
  std::string text(noun);
  if (has_min && has_max) {
    return text + " from " + min + " to " + max;
  }
  if (has_min) {
    return text + " >= " + min;
  }
  return has_max ? text + " <= " + max : text;
}

std::string AllowedInteger(IntegerRange range) {
  return Allowed("an integer", true, std::to_string(range.min),
                 range.max != std::numeric_limits<std::uint64_t>::max(), std::to_string(range.max));
}

std::string NumberText(double v) {
  std::string text;
  AppendJsonNumber(text, v);
  return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

std::string AllowedNumber(NumberRange range) {
  const NumberRange all;
  if (range.above_min) {
    return "a finite number > " + NumberText(range.min) +
           (range.max != all.max ? " and <= " + NumberText(range.max) : "");
  }
  return Allowed("a finite number", range.min != all.min, NumberText(range.min),
                 range.max != all.max, NumberText(range.max));
}

std::string Join(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) {
    text += text.empty() ? "" : ", ";
    text += name;
  }
  return text;
}

// Cuts between characters, not inside a multi-byte one.
std::string Shorten(std::string text) {
  if (text.size() <= kShownLength) {
    return text;
  }
  std::size_t end = kShownLength;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  return text.substr(0, end) + "...";
}

// Levenshtein distance.
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

// An integer of either kind that is not negative.
std::optional<std::uint64_t> AsUnsigned(const Json& value) {
  if (const auto* v = std::get_if<std::uint64_t>(&value.value())) {
    return *v;
  }
  if (const auto* v = std::get_if<std::int64_t>(&value.value()); v != nullptr && *v >= 0) {
    return static_cast<std::uint64_t>(*v);
  }
  return std::nullopt;
}

}  // namespace

std::string Shown(const Json& value) {
  if (value.is_object()) {
    return "an object";
  }
  if (value.is_array()) {
    return "an array";
  }
  if (value.is_double() && !std::isfinite(value.number())) {
    return std::isnan(value.number()) ? "nan" : "infinity";
  }
  return Shorten(DumpJson(value));
}

std::string_view NearestName(std::string_view name, std::span<const std::string_view> known) {
  std::string_view nearest;
  std::size_t best = std::max<std::size_t>(2, name.size() / 3) + 1;
  if (name.size() > kShownLength) {
    return nearest;
  }
  for (const std::string_view candidate : known) {
    const std::size_t distance = Distance(name, candidate);
    if (distance < best && distance < candidate.size()) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

Decoder::Decoder(const Json& value, std::string path) : value_(&value), path_(std::move(path)) {
  if (!value.is_object()) {
    value_ = &EmptyObject();
    Fail("", "must be an object, got " + Shown(value));
  }
}

std::string Decoder::PathOf(std::string_view name) const {
  if (name.empty() || path_.empty()) {
    return name.empty() ? path_ : std::string(name);
  }
  return path_ + "." + std::string(name);
}

void Decoder::Fail(std::string_view name, std::string message) {
  if (!error_) {
    const std::string path = PathOf(name);
    error_ = path.empty() ? std::move(message) : path + ": " + message;
  }
}

const Json* Decoder::Declare(std::string_view name) {
  known_.push_back(name);
  return failed() ? nullptr : value_->Find(name);
}

std::optional<std::uint64_t> Decoder::ReadInteger(std::string_view name, IntegerRange range,
                                                  std::string_view keyword, const Json& initial) {
  if (schema_ != nullptr) {
    Record(name, IntegerType(range, keyword), initial);
  }
  const Json* value = Declare(name);
  if (value == nullptr || (keyword == "null" && value->is_null()) ||
      (!keyword.empty() && value->is_string() && value->string() == keyword)) {
    return std::nullopt;
  }
  const auto read = AsUnsigned(*value);
  if (!read || *read < range.min || *read > range.max) {
    Fail(name, "must be " + AllowedInteger(range) +
                   (keyword.empty() ? "" : " or " + std::string(keyword)) + ", got " +
                   Shown(*value));
    return std::nullopt;
  }
  return read;
}

std::optional<double> Decoder::ReadNumber(std::string_view name, NumberRange range, bool nullable,
                                          const Json& initial) {
  if (schema_ != nullptr) {
    Record(name, NumberType(range, nullable), initial);
  }
  const Json* value = Declare(name);
  if (value == nullptr || (nullable && value->is_null())) {
    return std::nullopt;
  }
  if (!value->is_number() || !(value->number() >= range.min && value->number() <= range.max) ||
      (range.above_min && value->number() == range.min)) {
    Fail(name, "must be " + AllowedNumber(range) + (nullable ? " or null" : "") + ", got " +
                   Shown(*value));
    return std::nullopt;
  }
  return value->number();
}

std::optional<std::size_t> Decoder::ReadChoice(std::string_view name,
                                               std::span<const std::string_view> choices,
                                               std::string_view initial) {
  if (schema_ != nullptr) {
    Record(name, ChoiceType(choices), initial.empty() ? Json() : Json(initial));
  }
  const Json* value = Declare(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  std::string_view nearest;
  if (value->is_string()) {
    const auto found = std::ranges::find(choices, value->string());
    if (found != choices.end()) {
      return static_cast<std::size_t>(found - choices.begin());
    }
    nearest = choices.size() > 1 ? NearestName(value->string(), choices) : nearest;
  }
  Fail(name, (choices.size() == 1 ? "must be " : "must be one of ") + Join(choices) + ", got " +
                 Shown(*value) +
                 (nearest.empty() ? "" : "; did you mean " + std::string(nearest) + "?"));
  return std::nullopt;
}

void Decoder::Field(std::string_view name, bool& out) {
  if (schema_ != nullptr) {
    Record(name, TypeNamed("boolean", false), out);
  }
  const Json* value = Declare(name);
  if (value == nullptr) {
    return;
  }
  if (!value->is_bool()) {
    Fail(name, "must be true or false, got " + Shown(*value));
    return;
  }
  out = value->boolean();
}

void Decoder::Field(std::string_view name, double& out, NumberRange range) {
  out = ReadNumber(name, range, false, out).value_or(out);
}

void Decoder::Field(std::string_view name, std::optional<double>& out, NumberRange range) {
  if (const auto read = ReadNumber(name, range, true, out ? Json(*out) : Json())) {
    out = read;
  }
}

void Decoder::Field(std::string_view name, std::optional<std::string>& out) {
  if (schema_ != nullptr) {
    Record(name, TypeNamed("string", true), out ? Json(*out) : Json());
  }
  const Json* value = Declare(name);
  if (value == nullptr || value->is_null()) {
    return;
  }
  if (!value->is_string()) {
    Fail(name, "must be a string or null, got " + Shown(*value));
    return;
  }
  out = value->string();
}

void Decoder::Field(std::string_view name, std::string& out) {
  if (schema_ != nullptr) {
    Record(name, TypeNamed("string", false), out.empty() ? Json() : Json(out));
  }
  const Json* value = Declare(name);
  if (value == nullptr) {
    return;
  }
  if (!value->is_string()) {
    Fail(name, "must be a string, got " + Shown(*value));
    return;
  }
  out = value->string();
}

void Decoder::Field(std::string_view name, std::optional<std::uint64_t>& out, IntegerRange range,
                    std::string_view keyword) {
  if (const auto read = ReadInteger(name, range, keyword, keyword)) {
    out = read;
  }
}

void Decoder::Field(std::string_view name, std::string& out,
                    std::span<const std::string_view> names) {
  if (const auto index = ReadChoice(name, names, out)) {
    out = names[*index];
  }
}

void Decoder::Field(std::string_view name, std::vector<std::string>& out) {
  if (schema_ != nullptr) {
    Record(name, StringListType(), Json());
  }
  const Json* value = Declare(name);
  if (value == nullptr) {
    return;
  }
  const bool fits =
      value->is_array() && !value->array().empty() &&
      std::ranges::all_of(value->array(), [](const Json& v) { return v.is_string(); });
  if (!fits) {
    Fail(name, "must be a list of at least one string, got " +
                   (value->is_array() && value->array().empty() ? "an empty one" : Shown(*value)));
    return;
  }
  out.clear();
  for (const Json& item : value->array()) {
    out.push_back(item.string());
  }
}

void Decoder::Limit(std::string_view name, std::uint64_t& out, IntegerRange range,
                    std::uint64_t unlimited) {
  const Json* value = value_->Find(name);
  if (const auto read = ReadInteger(name, range, "null", out)) {
    out = *read;
  } else if (value != nullptr && value->is_null()) {
    out = unlimited;
  }
}

void Decoder::Object(std::string_view name, const std::function<void(Decoder&)>& fields) {
  ReadObject(name, fields, Presence::kDefaults);
}

bool Decoder::ObjectIfPresent(std::string_view name, const std::function<void(Decoder&)>& fields) {
  return ReadObject(name, fields, Presence::kOptional);
}

bool Decoder::OptionalObject(std::string_view name, const std::function<void(Decoder&)>& fields) {
  return ReadObject(name, fields, Presence::kNullable);
}

bool Decoder::ReadObject(std::string_view name, const std::function<void(Decoder&)>& fields,
                         Presence presence) {
  static const Json absent = Json::Object();
  const bool nullable = presence == Presence::kNullable;
  if (schema_ != nullptr) {
    const std::string_view doc = std::exchange(doc_, {});
    Json type = DescribeFields(fields);
    doc_ = doc;
    Record(name, nullable ? OrNullType(std::move(type)) : std::move(type), Json());
  }
  const Json* value = Declare(name);
  const bool present = value != nullptr && !(nullable && value->is_null());
  if (presence != Presence::kDefaults && !present) {
    return false;
  }
  Decoder inner(present ? *value : absent, PathOf(name));
  fields(inner);
  inner.CheckUnknown();
  if (inner.error_ && !error_) {
    error_ = std::move(inner.error_);
  }
  return present;
}

std::size_t Decoder::Variants(std::string_view tag, std::span<const Variant> variants) {
  if (schema_ != nullptr) {
    RecordVariants(tag, variants);
    return 0;
  }
  std::vector<std::string_view> names;
  for (const Variant& variant : variants) {
    names.push_back(variant.name);
  }
  const std::size_t chosen = ReadChoice(tag, names, names.front()).value_or(0);
  if (!failed()) {
    variants[chosen].fields(*this);
    CheckForms(tag, variants, chosen);
  }
  return chosen;
}

// Names that only another form knows.
void Decoder::CheckForms(std::string_view tag, std::span<const Variant> variants,
                         std::size_t chosen) {
  static const Json empty = Json::Object();
  for (const Variant& variant : variants) {
    Decoder other(empty, path_);
    variant.fields(other);
    for (const std::string_view name : other.known_) {
      if (Has(name) && std::ranges::find(known_, name) == known_.end()) {
        Fail(name, "belongs to " + std::string(tag) + " " + std::string(variant.name) +
                       " and is not accepted with " + std::string(variants[chosen].name));
      }
    }
  }
}

const Json* Decoder::Raw(std::string_view name) {
  if (schema_ != nullptr) {
    Record(name, Json::Object(), Json());
  }
  return Declare(name);
}

void Decoder::Require(std::string_view name) {
  if (schema_ != nullptr) {
    schema_->required.emplace_back(name);
    return;
  }
  if (!Has(name)) {
    Fail(name, "is required");
  }
}

void Decoder::Refuse(std::string_view name, std::string_view reason) {
  refused_.push_back(name);
  const Json* value = value_->Find(name);
  if (value != nullptr && !value->is_null()) {
    Fail(name, std::string(reason));
  }
}

void Decoder::CheckUnknown() {
  if (failed()) {
    return;
  }
  for (const Json::Member& member : value_->object()) {
    if (std::ranges::find(known_, member.first) != known_.end() ||
        std::ranges::find(refused_, member.first) != refused_.end()) {
      continue;
    }
    std::string shown;
    AppendJsonString(shown, Shorten(member.first));
    const std::string_view nearest = NearestName(member.first, known_);
    std::string hint = nearest.empty() ? "allowed are: " + Join(known_)
                                       : "did you mean \"" + std::string(nearest) + "\"?";
    Fail("", "unknown field " + shown + "; " + hint);
    return;
  }
}

Result<void> Decoder::Finish(std::string_view where) {
  CheckUnknown();
  return FinishOpen(where);
}

Result<void> Decoder::FinishOpen(std::string_view where) const {
  if (error_) {
    return UsageError(std::string(where), *error_);
  }
  return {};
}

}  // namespace dynosim::config
