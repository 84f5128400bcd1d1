// SPDX-License-Identifier: Apache-2.0
// The text of --help and --help-all, from the declarations of a command.
#pragma once

#include <cstddef>
#include <string>

#include "cli/command_tree.h"

namespace CLI {
class App;
}

namespace dynosim::cli {

inline constexpr std::size_t kHelpColumns = 100;

// The help of one command. Not `all`: only its common flags, and how to see the others.
std::string HelpOf(const CommandFacts& command, bool all);

// "dynosim replay [FILE...] [flags]"
std::string UsageOf(const CommandFacts& command);

// "--set PATH=YAML", "-c, --config FILE"
std::string FlagText(const ArgumentFacts& argument);

// The parser shows this help, for `app` and the commands that are added to it afterwards.
void UseHelp(CLI::App& app);

}  // namespace dynosim::cli
