// SPDX-License-Identifier: Apache-2.0
#include "config/schema.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "config/decode.h"

namespace dynosim::config {
namespace {

Json AnyOf(Json first, Json second) {
  Json type;
  type.Add("anyOf", Json::Array{std::move(first), std::move(second)});
  return type;
}

Json ToJson(ObjectSchema schema) {
  Json json;
  if (!schema.forms.empty()) {
    json.Add("oneOf", std::move(schema.forms));
    return json;
  }
  json.Add("type", "object");
  json.Add("properties", std::move(schema.properties));
  if (!schema.required.empty()) {
    json.Add("required", std::move(schema.required));
  }
  json.Add("additionalProperties", false);
  return json;
}

}  // namespace

Json TypeNamed(std::string_view name, bool nullable) {
  Json type;
  if (nullable) {
    type.Add("type", Json::Array{Json(name), Json("null")});
  } else {
    type.Add("type", name);
  }
  return type;
}

Json IntegerType(IntegerRange range, std::string_view keyword) {
  Json type = TypeNamed("integer", keyword == "null");
  type.Add("minimum", range.min);
  if (range.max <= std::numeric_limits<std::uint32_t>::max()) {
    type.Add("maximum", range.max);
  }
  if (keyword.empty() || keyword == "null") {
    return type;
  }
  Json word;
  word.Add("const", keyword);
  return AnyOf(std::move(type), std::move(word));
}

Json NumberType(NumberRange range, bool nullable) {
  constexpr NumberRange kAll;
  Json type = TypeNamed("number", nullable);
  if (range.min != kAll.min) {
    type.Add(range.above_min ? "exclusiveMinimum" : "minimum", range.min);
  }
  if (range.max != kAll.max) {
    type.Add("maximum", range.max);
  }
  return type;
}

Json ChoiceType(std::span<const std::string_view> choices) {
  Json::Array names;
  for (const std::string_view choice : choices) {
    names.emplace_back(choice);
  }
  Json type;
  type.Add("enum", std::move(names));
  return type;
}

Json StringListType() {
  Json type = TypeNamed("array", false);
  type.Add("items", TypeNamed("string", false));
  type.Add("minItems", 1);
  return type;
}

Json OrNullType(Json type) { return AnyOf(std::move(type), TypeNamed("null", false)); }

void Decoder::Record(std::string_view name, Json type, const Json& initial) {
  if (!doc_.empty()) {
    type.Add("description", std::exchange(doc_, {}));
  }
  if (!initial.is_null()) {
    type.Add("default", initial);
  }
  schema_->properties.emplace_back(std::string(name), std::move(type));
}

// Every form is a whole object: its tag, which may be absent in the first one, and its fields.
void Decoder::RecordVariants(std::string_view tag, std::span<const Variant> variants) {
  doc_ = {};
  for (const Variant& variant : variants) {
    const bool first = &variant == &variants.front();
    Json form = DescribeFields([&](Decoder& v) {
      Json type;
      type.Add("const", variant.name);
      v.Doc(variant.doc).Record(tag, std::move(type), first ? Json(variant.name) : Json());
      if (!first) {
        v.Require(tag);
      }
      variant.fields(v);
    });
    schema_->forms.push_back(std::move(form));
  }
}

Json DescribeFields(const std::function<void(Decoder&)>& fields) {
  static const Json empty = Json::Object();
  ObjectSchema schema;
  Decoder decoder(empty, "");
  decoder.schema_ = &schema;
  fields(decoder);
  return ToJson(std::move(schema));
}

}  // namespace dynosim::config
