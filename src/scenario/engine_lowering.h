// SPDX-License-Identifier: Apache-2.0
// From the engine section of a prediction document to the engines of a scenario. Every role is
// written as an engine configuration, the same JSON that `replay` takes, and decoded as such.
#pragma once

#include <string>

#include "base/result.h"
#include "scenario/engine_section.h"
#include "scenario/scenario.h"

namespace dynosim::scenario {

// Fills the topology of the scenario. Reads the model where the section needs it; errors name
// `where` and the dotted path.
Result<void> MakeEngines(const EngineSection& section, const std::string& where,
                         Scenario& scenario);

}  // namespace dynosim::scenario
