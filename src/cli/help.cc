// SPDX-License-Identifier: Apache-2.0
// Two columns: flags on the left, their text wrapped on the right; a flag too long for its column
// has a line of its own. Groups follow one another without blank lines, so that a command fits a
// screen.
#include "cli/help.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command_tree.h"
#include "cli/help_texts.h"

namespace dynosim::cli {
namespace {

constexpr std::size_t kTextColumn = 32;

// Lines of at most `width` columns; words stay whole.
std::vector<std::string> Wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width) {
      lines.emplace_back();
    }
    lines.back() += lines.back().empty() ? "" : " ";
    lines.back() += word;
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
  }
  return lines;
}

std::string Row(const std::string& left, std::string_view text) {
  std::string out = "  " + left;
  bool fresh = out.size() + 1 >= kTextColumn;
  if (fresh) {
    out += '\n';
  } else {
    out.resize(kTextColumn, ' ');
  }
  for (const std::string& line : Wrapped(text, kHelpColumns - kTextColumn)) {
    out += (fresh ? std::string(kTextColumn, ' ') : "") + line + "\n";
    fresh = true;
  }
  return out;
}

bool IsShown(const ArgumentFacts& argument, const HelpText& text, bool all) {
  const auto common = [&](const std::string& name) {
    return std::ranges::find(text.common, name) != text.common.end();
  };
  return all || text.common.empty() || argument.positional ||
         std::ranges::any_of(argument.names, common);
}

// --help and --help-all are in the last line.
bool IsHelp(const ArgumentFacts& argument) {
  return std::ranges::find(argument.names, "--help") != argument.names.end() ||
         std::ranges::find(argument.names, "--help-all") != argument.names.end();
}

std::string ArgumentRow(const ArgumentFacts& argument) {
  return Row(FlagText(argument), argument.help + (argument.required ? " (required)" : ""));
}

}  // namespace

std::string FlagText(const ArgumentFacts& argument) {
  if (argument.positional) {
    return argument.value + (argument.many ? "..." : "");
  }
  std::string text;
  for (const std::string& name : argument.names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return argument.value.empty() ? text : text + " " + argument.value;
}

std::string UsageOf(const CommandFacts& command) {
  std::string text = "dynosim" + (command.path.empty() ? "" : " " + command.path);
  if (!command.commands.empty()) {
    return text + " COMMAND";
  }
  bool flags = false;
  for (const ArgumentFacts& argument : command.arguments) {
    if (argument.positional) {
      const std::string word = FlagText(argument);
      text += argument.required ? " " + word : " [" + word + "]";
    } else if (argument.required) {
      text += " " + argument.names.front() + " " + argument.value;
    }
    flags = flags || (!argument.positional && !IsHelp(argument));
  }
  return flags ? text + " [flags]" : text;
}

std::string HelpOf(const CommandFacts& command, bool all) {
  const HelpText text = HelpTextOf(command.path);
  std::string out = fmt::format("{}\n\nUsage: {}\n", command.help, UsageOf(command));
  std::vector<std::string> groups;
  std::size_t hidden = 0;
  for (const ArgumentFacts& argument : command.arguments) {
    const bool shown = IsShown(argument, text, all);
    hidden += shown || IsHelp(argument) ? 0 : 1;
    if (shown && !IsHelp(argument) && std::ranges::find(groups, argument.group) == groups.end()) {
      groups.push_back(argument.group);
    }
  }
  out += groups.empty() ? "" : "\n";
  for (const std::string& group : groups) {
    out += (group == "Options" ? "Flags" : group) + ":\n";
    for (const ArgumentFacts& argument : command.arguments) {
      if (argument.group == group && !IsHelp(argument) && IsShown(argument, text, all)) {
        out += ArgumentRow(argument);
      }
    }
  }
  out += command.commands.empty() ? "" : "\nCommands:\n";
  for (const CommandFacts& below : command.commands) {
    out += Row(below.path.substr(below.path.rfind(' ') + 1), below.help);
  }
  out += text.examples.empty() ? "" : "\nExamples:\n";
  for (const Example& example : text.examples) {
    out += fmt::format("  {}\n", example.text);
  }
  if (hidden > 0) {
    out += fmt::format("\n--help-all shows {} more flags.\n", hidden);
  }
  if (!command.commands.empty()) {
    out += fmt::format("\n{} COMMAND --help has the flags of a command.\n",
                       "dynosim" + (command.path.empty() ? "" : " " + command.path));
  }
  return out;
}

void UseHelp(CLI::App& app) {
  app.formatter_fn([](const CLI::App* at, const std::string& /*name*/, CLI::AppFormatMode mode) {
    return HelpOf(DescribeCommand(*at), mode == CLI::AppFormatMode::All);
  });
}

}  // namespace dynosim::cli
