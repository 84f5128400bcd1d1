// SPDX-License-Identifier: Apache-2.0
// A type name of CLI11 has the word for the value first, then what the checks of the option say:
// "NAME:{vllm,sglang}", "MB:INT in [1 - 4096]", "S:NONNEGATIVE".
#include "cli/command_tree.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace dynosim::cli {
namespace {

// Words of CLI11 for options that name no value themselves.
std::string ValueWord(std::string_view word) {
  if (word == "UINT" || word == "INT") {
    return "N";
  }
  return word == "FLOAT" ? "X" : std::string(word);
}

std::vector<std::string> SplitAtCommas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return parts;
}

void ReadTypeName(std::string_view type, ArgumentFacts& out) {
  const std::size_t colon = type.find(':');
  out.value = ValueWord(type.substr(0, colon));
  if (colon == std::string_view::npos) {
    return;
  }
  std::string_view check = type.substr(colon + 1);
  if (check.starts_with('{') && check.ends_with('}')) {
    out.choices = SplitAtCommas(check.substr(1, check.size() - 2));
  } else if (check == "POSITIVE") {
    out.range = "above 0";
  } else if (check == "NONNEGATIVE") {
    out.range = "0 or more";
  } else if (const std::size_t bracket = check.find('['); bracket != std::string_view::npos) {
    check.remove_prefix(bracket + 1);
    out.range = check.substr(0, check.find(']'));
  }
}

ArgumentFacts DescribeOption(const CLI::Option& option) {
  ArgumentFacts out;
  out.positional = !option.nonpositional();
  if (out.positional) {
    out.names.push_back(option.get_name(true));
  }
  for (const std::string& name : option.get_snames()) {
    out.names.push_back("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    out.names.push_back("--" + name);
  }
  if (option.get_items_expected_max() > 0) {
    ReadTypeName(option.get_type_name(), out);
  }
  out.many = option.get_items_expected_max() > 1;
  out.group = option.get_group();
  out.help = option.get_description();
  if (!option.get_default_str().empty()) {
    out.help += " (default " + option.get_default_str() + ")";
  }
  out.required = option.get_required();
  return out;
}

CommandFacts Describe(const CLI::App& app, std::string path) {
  CommandFacts out{
      .path = std::move(path), .help = app.get_description(), .arguments = {}, .commands = {}};
  for (const CLI::Option* const option : app.get_options()) {
    if (!option->get_group().empty()) {
      out.arguments.push_back(DescribeOption(*option));
    }
  }
  for (const CLI::App* const command : app.get_subcommands({})) {
    if (!command->get_group().empty()) {
      out.commands.push_back(Describe(
          *command, out.path.empty() ? command->get_name() : out.path + " " + command->get_name()));
    }
  }
  return out;
}

}  // namespace

CommandFacts DescribeCommand(const CLI::App& app) {
  std::string path;
  for (const CLI::App* at = &app; at->get_parent() != nullptr; at = at->get_parent()) {
    path = path.empty() ? at->get_name() : at->get_name() + " " + path;
  }
  return Describe(app, std::move(path));
}

std::vector<const CommandFacts*> LeafCommands(const CommandFacts& root) {
  std::vector<const CommandFacts*> leaves;
  for (const CommandFacts& command : root.commands) {
    if (command.commands.empty()) {
      leaves.push_back(&command);
      continue;
    }
    const std::vector<const CommandFacts*> below = LeafCommands(command);
    leaves.insert(leaves.end(), below.begin(), below.end());
  }
  return leaves;
}

}  // namespace dynosim::cli
