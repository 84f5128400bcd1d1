// SPDX-License-Identifier: Apache-2.0
// A checked prediction document written out again, every default filled in: what a search hands to
// the user, and the one form in which equal deployments compare equal.
#pragma once

#include "base/json.h"
#include "scenario/prediction.h"

namespace dynosim::scenario {

// DecodePrediction of the result gives the same document.
Json PredictionJson(const PredictionDocument& document, Stack stack);

}  // namespace dynosim::scenario
