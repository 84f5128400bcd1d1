// SPDX-License-Identifier: Apache-2.0
#include "search/schema.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "scenario/prediction.h"
#include "search/domain.h"
#include "search/settings.h"
#include "search/shapes.h"

namespace dynosim::search {
namespace {

Json* MemberOf(Json& object, std::string_view name) {
  const auto found = std::ranges::find(object.object(), name, &Json::Member::first);
  return found == object.object().end() ? nullptr : &found->second;
}

Json Typed(std::string_view type) {
  Json json;
  json.Add("type", type);
  return json;
}

Json OneOfThese(Json::Array schemas) {
  Json json;
  json.Add("anyOf", std::move(schemas));
  return json;
}

// An object of these members and no others.
Json Mapping(Json properties, Json::Array required) {
  Json json = Typed("object");
  json.Add("properties", std::move(properties));
  json.Add("required", std::move(required));
  json.Add("additionalProperties", false);
  return json;
}

// {choices: [...]} of values that `value` allows.
Json ChoicesSchema(const Json& value) {
  Json list = Typed("array");
  list.Add("items", value);
  list.Add("minItems", 1);
  list.Add("uniqueItems", true);
  Json properties;
  properties.Add("choices", std::move(list));
  return Mapping(std::move(properties), {"choices"});
}

// {range: {min, max, step, scale}}
Json RangeSchema(FieldKind kind) {
  const Json number = Typed(kind == FieldKind::kInteger ? "integer" : "number");
  Json step = number;
  step.Add("exclusiveMinimum", 0);
  Json scale;
  scale.Add("enum", Json::Array{"linear", "log"});
  scale.Add("default", "linear");
  Json fields;
  fields.Add("min", number);
  fields.Add("max", number);
  fields.Add("step", std::move(step));
  fields.Add("scale", std::move(scale));
  Json properties;
  properties.Add("range", Mapping(std::move(fields), {"min", "max"}));
  return Mapping(std::move(properties), {"range"});
}

bool SearchedWhenLeftOut(std::string_view path) {
  return path == "engine.mode" || path == "engine.backend" ||
         path.ends_with(".scheduler.max_batched_tokens") ||
         path.ends_with(".scheduler.max_sequences");
}

// A field that takes `value` or a domain; what is said about the field stays outside.
Json ValueOrDomain(Json value, FieldKind kind, bool keep_default) {
  Json about;
  for (const std::string_view name : {"description", "default"}) {
    if (const Json* text = MemberOf(value, name)) {
      if (name != "default" || keep_default) {
        about.Add(std::string(name), *text);
      }
      std::erase_if(value.object(), [&](const Json::Member& m) { return m.first == name; });
    }
  }
  Json::Array forms = {value, ChoicesSchema(value)};
  if (kind != FieldKind::kWord) {
    forms.push_back(RangeSchema(kind));
  }
  Json json = OneOfThese(std::move(forms));
  if (about.is_object()) {
    for (Json::Member& member : about.object()) {
      json.Add(std::move(member.first), std::move(member.second));
    }
  }
  return json;
}

// preset: default, false, or a list of shapes.
Json PresetSchema() {
  Json size = Typed("integer");
  size.Add("minimum", 1);
  Json fields;
  Json::Array names;
  const Json shape = Shape().ToJson();
  for (const Json::Member& field : shape.object()) {
    fields.Add(field.first, size);
    names.emplace_back(field.first);
  }
  Json list = Typed("array");
  list.Add("items", Mapping(std::move(fields), std::move(names)));
  list.Add("minItems", 1);
  Json generated;
  generated.Add("const", "default");
  Json off;
  off.Add("const", false);
  Json json = OneOfThese({std::move(generated), std::move(off), std::move(list)});
  json.Add("description", "Generated legal shapes, none, or these; excludes the other fields.");
  json.Add("default", "default");
  return json;
}

Json FractionLoad() {
  Json type;
  type.Add("const", "kv_capacity_fraction");
  type.Add("description", "The concurrency that fills this share of the KV cache.");
  Json share = Typed("number");
  share.Add("exclusiveMinimum", 0);
  Json properties;
  properties.Add("type", std::move(type));
  properties.Add("fraction", ValueOrDomain(std::move(share), FieldKind::kNumber, true));
  return Mapping(std::move(properties), {"type", "fraction"});
}

// Puts domains into the schema of the object, or of one of its forms, at a path.
void AddDomains(Json& schema, const std::string& path) {
  for (const std::string_view name : {"anyOf", "oneOf"}) {
    if (Json* forms = MemberOf(schema, name)) {
      for (Json& form : forms->array()) {
        AddDomains(form, path);
      }
    }
  }
  Json* properties = MemberOf(schema, "properties");
  if (properties == nullptr) {
    return;
  }
  for (Json::Member& member : properties->object()) {
    const std::string at = path.empty() ? member.first : path + "." + member.first;
    AddDomains(member.second, at);
    if (const std::optional<FieldKind> kind = DomainKind(at)) {
      member.second = ValueOrDomain(std::move(member.second), *kind, !SearchedWhenLeftOut(at));
    }
    if (at == "traffic.load") {
      MemberOf(member.second, "oneOf")->array().push_back(FractionLoad());
    }
  }
  if (path.ends_with(".parallelism")) {
    properties->Add("preset", PresetSchema());
  }
}

}  // namespace

Json RecommendationSchema(scenario::Stack stack) {
  Json schema = scenario::PredictionSchema(stack);
  *MemberOf(schema, "title") = "Document of dynosim recommend";
  AddDomains(schema, "");
  Json sections = SearchSettingsSchema();
  for (Json::Member& section : MemberOf(sections, "properties")->object()) {
    MemberOf(schema, "properties")->Add(std::move(section.first), std::move(section.second));
  }
  MemberOf(schema, "required")->array().emplace_back("optimization");
  return schema;
}

}  // namespace dynosim::search
