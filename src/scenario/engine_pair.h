// SPDX-License-Identifier: Apache-2.0
// Rules for the engines of a prefill and a decode pool that hand requests over (chapter 30,
// section 6.1). Errors name the flags that have the engines.
#pragma once

#include <string_view>

#include "base/result.h"
#include "engine/settings.h"

namespace dynosim::scenario {

inline constexpr std::string_view kPrefillEngineFlag = "--prefill-engine-args";
inline constexpr std::string_view kDecodeEngineFlag = "--decode-engine-args";

// The engine given with `flag` must have the role.
Result<void> CheckEngineRole(std::string_view flag, const engine::EngineSettings& settings,
                             engine::WorkerRole role);
Result<void> CheckEnginePair(const engine::EngineSettings& prefill,
                             const engine::EngineSettings& decode);

}  // namespace dynosim::scenario
