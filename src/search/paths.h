// SPDX-License-Identifier: Apache-2.0
// Values of a document by dotted path.
#pragma once

#include <string_view>

#include "base/json.h"

namespace dynosim::search {

// nullptr when there is none.
const Json* FindPath(const Json& document, std::string_view path);
// Replaces or adds; mappings on the way are made. Nothing on the way may be another value.
void SetPath(Json& document, std::string_view path, Json value);
// Takes the member out when it is there.
void RemovePath(Json& document, std::string_view path);
// The document without what only says how the search is executed: equal searches have equal ones.
Json WithoutExecution(Json document);

}  // namespace dynosim::search
