// SPDX-License-Identifier: Apache-2.0
// The flags of `replay`: names, help texts and groups. Values are kept as text; what they may be is
// decided in scenario/replay_flags.cc.
#pragma once

#include "scenario/replay_flags.h"

namespace CLI {
class App;
}

namespace dynosim::cli {

// `flags` must outlive the command.
void AddReplayOptions(CLI::App& command, scenario::ReplayFlags& flags);

}  // namespace dynosim::cli
