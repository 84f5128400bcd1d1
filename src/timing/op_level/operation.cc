// SPDX-License-Identifier: Apache-2.0
#include "timing/op_level/operation.h"

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"

namespace dynosim::timing {
namespace {

// Appends the fields of an operation to a JSON object.
class FieldWriter {
 public:
  explicit FieldWriter(Json& object) : object_(object) {}
  template <class T>
  void operator()(std::string_view name, const T& value) {
    if constexpr (std::same_as<T, std::vector<std::string>>) {
      Json::Array list;
      for (const std::string& item : value) {
        list.emplace_back(item);
      }
      object_.Add(std::string(name), std::move(list));
    } else {
      object_.Add(std::string(name), Json(value));
    }
  }

 private:
  Json& object_;
};

template <class T>
std::string_view NameOf(const T& kind) {
  if constexpr (std::same_as<T, OverlapOp>) {
    return "Overlap";
  } else if constexpr (std::same_as<T, FallbackOp>) {
    return "Fallback";
  } else if constexpr (requires { T::kKind; }) {
    return T::kKind;
  } else {
    return kind.Kind();
  }
}

}  // namespace

std::string_view KindName(const Operation& operation) {
  return std::visit([](const auto& kind) { return NameOf(kind); }, operation.kind);
}

Json ToJson(const Operation& operation) {
  Json fields;
  fields.Add("name", operation.name);
  if (const auto* const overlap = std::get_if<OverlapOp>(&operation.kind)) {
    fields.Add("group_a", ToJson(overlap->group_a));
    fields.Add("group_b", ToJson(overlap->group_b));
  } else if (const auto* const fallback = std::get_if<FallbackOp>(&operation.kind)) {
    fields.Add("primary", ToJson(fallback->primary.front()));
    fields.Add("fallback", ToJson(fallback->list));
  } else {
    fields.Add("scale_factor", operation.scale_factor);
    FieldWriter writer(fields);
    std::visit(
        [&writer](const auto& kind) {
          if constexpr (requires { kind.Fields(writer); }) {
            kind.Fields(writer);
          }
        },
        operation.kind);
  }
  Json json;
  json.Add(std::string(KindName(operation)), std::move(fields));
  return json;
}

Json ToJson(const std::vector<Operation>& operations) {
  Json::Array list;
  for (const Operation& operation : operations) {
    list.push_back(ToJson(operation));
  }
  return list;
}

}  // namespace dynosim::timing
