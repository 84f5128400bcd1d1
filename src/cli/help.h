// SPDX-License-Identifier: Apache-2.0
// The text of --help and --help-all, from the declarations of a command.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_tree.h"

namespace CLI {
class FormatterBase;
}

namespace dynosim::cli {

inline constexpr std::size_t kHelpColumns = 100;

// The help of one command. Not `all`: only its common flags, and how to see the others.
std::string HelpOf(const CommandFacts& command, bool all);

// "dynosim replay [FILE...] [flags]"
std::string UsageOf(const CommandFacts& command);

// "--set PATH=YAML", "-c, --config FILE"
std::string FlagText(const ArgumentFacts& argument);

// The same for the command line parser.
std::shared_ptr<CLI::FormatterBase> MakeHelpFormatter();

}  // namespace dynosim::cli
