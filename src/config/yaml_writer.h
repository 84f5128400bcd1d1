// SPDX-License-Identifier: Apache-2.0
// JSON values as YAML documents for people.
#pragma once

#include <string>

#include "base/json.h"

namespace dynosim::config {

// Block style, lists of scalars on one line, ends with a line feed. Reads back to the same value,
// with the rules of YAML 1.1 and 1.2 alike.
std::string WriteYaml(const Json& value);

}  // namespace dynosim::config
