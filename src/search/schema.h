// SPDX-License-Identifier: Apache-2.0
// The JSON schema of the document of `recommend`: that of `predict`, with domains where a field may
// have one and the sections of the search.
#pragma once

#include "base/json.h"
#include "scenario/prediction.h"

namespace dynosim::search {

// Draft 2020-12, with defaults and descriptions. A field that is searched when it is left out has
// no default.
Json RecommendationSchema(scenario::Stack stack);

}  // namespace dynosim::search
