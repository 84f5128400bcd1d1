// SPDX-License-Identifier: Apache-2.0
// The flags of `replay`: names, help texts and groups. Values are kept as text; what they may be is
// decided in scenario/replay_flags.cc.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "scenario/replay_flags.h"

namespace CLI {
class App;
}

namespace dynosim::cli {

// `flags` must outlive the command.
void AddReplayOptions(CLI::App& command, scenario::ReplayFlags& flags);

// Arguments of `replay` without program and command name, for callers that are no program.
Result<scenario::ReplayFlags> ParseReplayArguments(std::vector<std::string> arguments);

}  // namespace dynosim::cli
