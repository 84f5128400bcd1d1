// SPDX-License-Identifier: Apache-2.0
// The document of `predict` (chapter 60, B): a mapping of the sections traffic, engine and
// evaluation, read from YAML, JSON or a Python mapping alike, to the Scenario that `replay` builds
// from flags. One declaration per field gives reading, errors and the JSON schema.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "scenario/engine_section.h"
#include "scenario/router_section.h"
#include "scenario/scenario.h"
#include "scenario/traffic_section.h"

namespace dynosim::scenario {

// Which sections there are: the engine alone, or the router and planner around it too.
enum class Stack : std::uint8_t { kEngine, kDynamo };

// The document as the user gave it, checked.
struct PredictionDocument {
  TrafficSection traffic = DefaultTraffic();
  EngineSection engine;
  RouterSection router;
  Goodput sla;
};

// Errors name `where` (the file), the dotted path, the value and what is allowed.
Result<PredictionDocument> DecodePrediction(const Json& document, Stack stack,
                                            const std::string& where);

// Reads what the document refers to (model, timing) and resolves every default.
Result<Scenario> MakeScenario(const PredictionDocument& document, const std::string& where);

// Both.
Result<Scenario> BuildPrediction(const Json& document, Stack stack, const std::string& where);

// JSON schema of the document.
Json PredictionSchema(Stack stack);

// An error of the run in the terms of the document: flags of `replay` become dotted paths.
Error InTermsOfDocument(Error error);

}  // namespace dynosim::scenario
