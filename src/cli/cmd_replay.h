// SPDX-License-Identifier: Apache-2.0
// `dynosim replay`: checks the flags, runs the simulation, prints the table and writes the files.
#pragma once

#include "scenario/replay_flags.h"

namespace dynosim::cli {

// Returns the exit code.
int RunReplay(const scenario::ReplayFlags& flags);

}  // namespace dynosim::cli
