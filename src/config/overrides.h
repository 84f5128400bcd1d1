// SPDX-License-Identifier: Apache-2.0
// Overrides of a configuration document from the command line: `--set traffic.stop.requests=3`.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace dynosim::config {

// Applies PATH=VALUE to a mapping: PATH is dotted names, VALUE is YAML. Mappings on the way are
// made when absent or null, the last name is replaced. Errors name `where` and the text; the
// document is unchanged then.
Result<void> ApplyOverride(Json& document, std::string_view text, const std::string& where);

}  // namespace dynosim::config
