// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace dynosim {

// The value of a flag that takes a JSON object: the text itself, or the file that it names. Errors
// name the flag, or the file.
Result<Json> JsonOfArgument(std::string_view flag, const std::string& text);

}  // namespace dynosim
