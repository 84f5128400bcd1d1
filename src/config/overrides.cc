// SPDX-License-Identifier: Apache-2.0
#include "config/overrides.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "config/decode.h"
#include "config/yaml_to_json.h"

namespace dynosim::config {
namespace {

constexpr std::size_t kMaxParts = 32;

std::string Quoted(std::string_view text) { return Shown(Json(text)); }

Result<std::vector<std::string_view>> SplitPath(std::string_view path, const std::string& where) {
  std::vector<std::string_view> parts;
  std::string_view rest = path;
  while (true) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, dot);
    if (part.empty()) {
      return UsageError(where, "--set path " + Quoted(path) + " has an empty name between dots");
    }
    if (part.find_first_not_of("0123456789") == std::string_view::npos) {
      return UsageError(where, "--set path " + Quoted(path) +
                                   ": lists have no index here; replace " + "the whole list");
    }
    parts.push_back(part);
    if (dot == rest.size()) {
      break;
    }
    rest.remove_prefix(dot + 1);
  }
  if (parts.size() > kMaxParts) {
    return UsageError(where, "--set path " + Quoted(path) + " has more than " +
                                 std::to_string(kMaxParts) + " names");
  }
  return parts;
}

Json* FindMember(Json& object, std::string_view name) {
  for (Json::Member& member : object.object()) {
    if (member.first == name) {
      return &member.second;
    }
  }
  return nullptr;
}

// The member, made as null when absent.
Json& MemberOf(Json& object, std::string_view name) {
  if (object.is_null()) {
    object = Json::Object();
  }
  if (Json* found = FindMember(object, name)) {
    return *found;
  }
  object.Add(std::string(name), Json());
  return object.object().back().second;
}

}  // namespace

Result<void> ApplyOverride(Json& document, std::string_view text, const std::string& where) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return UsageError(where, "--set " + Quoted(text) + " must have the form PATH=VALUE");
  }
  const std::string_view path = text.substr(0, equals);
  DYNO_TRY(const std::vector<std::string_view> parts, SplitPath(path, where));
  DYNO_TRY(Json value,
           ParseYaml(text.substr(equals + 1), where + ": value of --set " + Quoted(path)));
  const Json* at = &document;
  for (const std::string_view part : parts) {
    if (at != nullptr && !at->is_object() && !at->is_null()) {
      return UsageError(where, "--set path " + Quoted(path) + " goes through a value that is no " +
                                   "mapping: " + Shown(*at) + " before " + Quoted(part));
    }
    at = at != nullptr && at->is_object() ? at->Find(part) : nullptr;
  }
  Json* target = &document;
  for (const std::string_view part : parts) {
    target = &MemberOf(*target, part);
  }
  *target = std::move(value);
  return {};
}

}  // namespace dynosim::config
