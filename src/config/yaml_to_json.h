// SPDX-License-Identifier: Apache-2.0
// YAML documents as JSON values, so that one decoder serves both. Plain scalars are typed by the
// rules of YAML 1.1 (yes and off are booleans, 010 is eight), with 1e3 a number as well; quoted
// ones stay text. Anchors, aliases and merge keys (<<) are expanded. The only place that includes
// the YAML library.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace dynosim::config {

// The one document of `text`; null when there is none. Errors name `where` and the line: syntax, a
// key given twice, keys that are no scalars, unknown tags, nesting over 100 levels, and documents
// that aliases blow up. Never fails in another way, whatever the bytes are.
Result<Json> ParseYaml(std::string_view text, const std::string& where);

}  // namespace dynosim::config
