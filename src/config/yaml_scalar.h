// SPDX-License-Identifier: Apache-2.0
// The type of a YAML scalar without quotes, by the rules of YAML 1.1.
#pragma once

#include <optional>
#include <string_view>

#include "base/json.h"

namespace dynosim::config {

// A boolean, integer, number or the text itself. Null has its own event in the parser.
Json PlainScalar(std::string_view text);

// A scalar with one of the tags null, bool, int, float and str (without the common prefix); absent
// for another tag or a text that does not read as it.
std::optional<Json> TaggedScalar(std::string_view tag, std::string_view text);

}  // namespace dynosim::config
