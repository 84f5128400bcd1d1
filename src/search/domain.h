// SPDX-License-Identifier: Apache-2.0
// Domains: the values that a field of the document may take in a search (chapter 60, C.1), written
// {choices: [...]} or {range: {min, max, step, scale}}.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/random.h"
#include "base/result.h"

namespace dynosim::search {

// A range without steps.
struct OpenRange {
  double min = 0.0;
  double max = 0.0;
  bool log = false;
  bool integer = false;

  // One draw, uniform in the value or in its logarithm.
  Json Draw(ChaCha12& random) const;
};

struct Domain {
  std::vector<Json> values;  // empty with an open range
  std::optional<OpenRange> open;
};

// A mapping of one member `choices` or `range`.
bool IsDomain(const Json& value);

// What the field of a domain takes.
enum class FieldKind : std::uint8_t { kInteger, kNumber, kWord };

// The kind of the fields that may have a domain, by dotted path; absent for all others.
std::optional<FieldKind> DomainKind(std::string_view path);

// Reads a domain. Errors name `where` and the path.
Result<Domain> ReadDomain(const Json& value, const std::string& path, FieldKind kind,
                          const std::string& where);

}  // namespace dynosim::search
