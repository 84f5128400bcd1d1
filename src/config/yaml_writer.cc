// SPDX-License-Identifier: Apache-2.0
#include "config/yaml_writer.h"

#include <algorithm>
#include <string>

#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>

#include "base/json.h"
#include "config/yaml_scalar.h"

namespace dynosim::config {
namespace {

// Letters first, and no word that YAML takes for something else than text.
bool MayBePlain(const std::string& text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto inside = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' || c == '/';
  };
  return !text.empty() && letter(text.front()) && std::ranges::all_of(text, inside) &&
         PlainScalar(text) == Json(text) && text != "null" && text != "Null" && text != "NULL";
}

void Write(YAML::Emitter& out, const Json& value) {
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const Json::Member& member : value.object()) {
      out << YAML::Key;
      Write(out, Json(member.first));
      out << YAML::Value;
      Write(out, member.second);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::Flow << YAML::BeginSeq;
    for (const Json& item : value.array()) {
      Write(out, item);
    }
    out << YAML::EndSeq;
  } else if (value.is_string() && !MayBePlain(value.string())) {
    out << YAML::DoubleQuoted << value.string();
  } else if (value.is_string()) {
    out << value.string();
  } else if (value.is_null()) {
    out << YAML::Null;
  } else {
    out << DumpJson(value);
  }
}

}  // namespace

std::string WriteYaml(const Json& value) {
  YAML::Emitter out;
  Write(out, value);
  return std::string(out.c_str()) + "\n";
}

}  // namespace dynosim::config
