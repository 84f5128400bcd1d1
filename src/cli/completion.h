// SPDX-License-Identifier: Apache-2.0
// Completion scripts for shells, from the declarations of the command line.
#pragma once

#include <string>

#include "cli/command_tree.h"

namespace dynosim::cli {

// `program` is the description of the whole program. Commands, flags, the values of flags with a
// fixed set of them, and files where a file is meant are completed.
std::string BashCompletion(const CommandFacts& program);
std::string ZshCompletion(const CommandFacts& program);
std::string FishCompletion(const CommandFacts& program);

}  // namespace dynosim::cli
