// SPDX-License-Identifier: Apache-2.0
// From the JSON of an engine to checked EngineSettings. Two forms are read: nested
// {"engine": {...}, "dp_size": 2} and flat {"block_size": 64, "dp_size": 2} with the older names;
// mixing them is an error. Options for what is not modelled are refused by name.
#pragma once

#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "engine/settings.h"

namespace dynosim::engine {

// `where` is the flag or file that errors name. Timing profiles are read from disk.
Result<EngineSettings> DecodeEngineSettings(const Json& value, std::string_view where);

// Spellings of the configuration.
// JSON schema of the nested form, with defaults and descriptions. Rules between fields are not in
// it.
Json EngineSettingsSchema();

std::string_view BackendName(Backend backend);
std::string_view WorkerRoleName(WorkerRole role);
std::string_view RouterQueuePolicyName(RouterQueuePolicy policy);

}  // namespace dynosim::engine
