// SPDX-License-Identifier: Apache-2.0
// What the declarations of the command line say, as plain data: the one source of the help texts,
// the shell completions and the reference page.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace dynosim::cli {

// One flag or positional argument.
struct ArgumentFacts {
  std::vector<std::string> names;  // "-c", "--config"; of a positional its one name
  std::string value;               // what stands for its value, empty for switches
  std::vector<std::string> choices;
  std::string range;  // allowed numbers, such as "1 - 4096", or empty
  std::string group;
  std::string help;
  bool positional = false;
  bool required = false;
  bool many = false;  // takes several values
};

struct CommandFacts {
  std::string path;  // "replay", "trace check"; empty for the program itself
  std::string help;
  std::vector<ArgumentFacts> arguments;  // in the order of their declaration
  std::vector<CommandFacts> commands;    // those one level below
};

// Hidden flags and commands are left out.
CommandFacts DescribeCommand(const CLI::App& app);

// Every command that does something, depth first.
std::vector<const CommandFacts*> LeafCommands(const CommandFacts& root);

}  // namespace dynosim::cli
