// SPDX-License-Identifier: Apache-2.0
#include "search/paths.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"

namespace dynosim::search {
namespace {

// The first name of a path, and what follows its dot.
std::pair<std::string_view, std::string_view> SplitFirst(std::string_view path) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) {
    return {path, {}};
  }
  return {path.substr(0, dot), path.substr(dot + 1)};
}

Json::Object::iterator FindMember(Json& object, std::string_view name) {
  return std::ranges::find(object.object(), name,
                           [](const Json::Member& m) -> std::string_view { return m.first; });
}

}  // namespace

const Json* FindPath(const Json& document, std::string_view path) {
  const Json* at = &document;
  while (at != nullptr && !path.empty()) {
    const auto [name, rest] = SplitFirst(path);
    at = at->is_object() ? at->Find(name) : nullptr;
    path = rest;
  }
  return at;
}

void SetPath(Json& document, std::string_view path, Json value) {
  Json* at = &document;
  while (!path.empty()) {
    const auto [name, rest] = SplitFirst(path);
    if (!at->is_object()) {
      *at = Json::Object();
    }
    auto member = FindMember(*at, name);
    if (member == at->object().end()) {
      at->Add(std::string(name), Json());
      member = std::prev(at->object().end());
    }
    at = &member->second;
    path = rest;
  }
  *at = std::move(value);
}

void RemovePath(Json& document, std::string_view path) {
  Json* at = &document;
  while (at->is_object()) {
    const auto [name, rest] = SplitFirst(path);
    const auto member = FindMember(*at, name);
    if (member == at->object().end()) {
      return;
    }
    if (rest.empty()) {
      at->object().erase(member);
      return;
    }
    at = &member->second;
    path = rest;
  }
}

Json WithoutExecution(Json document) {
  RemovePath(document, "optimizer.parallelism");
  const Json* const optimizer = FindPath(document, "optimizer");
  if (optimizer != nullptr && optimizer->is_object() && optimizer->object().empty()) {
    RemovePath(document, "optimizer");
  }
  return document;
}

}  // namespace dynosim::search
