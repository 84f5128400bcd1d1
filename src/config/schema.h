// SPDX-License-Identifier: Apache-2.0
// Parts of a JSON schema. A Decoder fills an ObjectSchema while it describes fields instead of
// reading them. Internal to config/decode.cc and config/schema.cc.
#pragma once

#include <span>
#include <string_view>

#include "base/json.h"
#include "config/decode.h"

namespace dynosim::config {

struct ObjectSchema {
  Json::Object properties;
  Json::Array required;
  Json::Array forms;  // whole schemas; the object is one of them when there are any
};

// {"type": name}, with null as well when it is nullable.
Json TypeNamed(std::string_view name, bool nullable);
// `keyword` is another value that is allowed, "null" for the null value, empty for none.
Json IntegerType(IntegerRange range, std::string_view keyword);
Json NumberType(NumberRange range, bool nullable);
Json ChoiceType(std::span<const std::string_view> choices);
Json StringListType();
Json OrNullType(Json type);

}  // namespace dynosim::config
