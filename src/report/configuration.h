// SPDX-License-Identifier: Apache-2.0
// The resolved configuration of a run as a report shows it: every member is the flag of the same
// name (with dashes), `trace_files` are the positional arguments. Running `replay` with these flags
// reproduces the run. Output paths and options without effect on results are left out.
#pragma once

#include "base/json.h"
#include "engine/settings.h"
#include "scenario/scenario.h"

namespace dynosim::report {

// The nested engine object of chapter 10, section 1, with all defaults.
Json EngineJson(const engine::EngineSettings& settings);

Json ConfigurationJson(const scenario::Scenario& scenario);

}  // namespace dynosim::report
