// SPDX-License-Identifier: Apache-2.0
// Help texts of all commands, from the declarations of the real command line.
#include "cli/help.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include "cli/command_tree.h"
#include "cli/commands.h"
#include "cli/help_texts.h"
#include "cli/reference.h"

namespace dynosim::cli {
namespace {

constexpr std::size_t kScreenLines = 45;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end == std::string::npos ? text.size() : end + 1;
  }
  return lines;
}

// Columns, not bytes.
std::size_t Columns(const std::string& line) {
  return static_cast<std::size_t>(std::ranges::count_if(
      line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

class Help : public testing::Test {
 protected:
  Help() : app_("about", "dynosim"), commands_(app_), program_(DescribeCommand(app_)) {}

  std::vector<const CommandFacts*> All() const {
    std::vector<const CommandFacts*> all = LeafCommands(program_);
    all.push_back(&program_);
    return all;
  }

  CLI::App app_;
  Commands commands_;
  CommandFacts program_;
};

TEST_F(Help, FitsAScreenForEveryCommand) {
  for (const CommandFacts* const command : All()) {
    const std::vector<std::string> lines = Lines(HelpOf(*command, false));
    EXPECT_LE(lines.size(), kScreenLines) << command->path;
    for (const std::string& line : lines) {
      EXPECT_LE(Columns(line), kHelpColumns) << command->path << ": " << line;
    }
  }
}

TEST_F(Help, NamesEveryFlagWhenAllAreAskedFor) {
  for (const CommandFacts* const command : All()) {
    const std::string all = HelpOf(*command, true);
    for (const ArgumentFacts& argument : command->arguments) {
      const std::string& name = argument.names.back();
      if (!argument.positional && name != "--help" && name != "--help-all") {
        EXPECT_NE(all.find(name), std::string::npos) << command->path << " " << name;
      }
    }
  }
}

TEST_F(Help, OfAnyCommandHasAnExample) {
  for (const CommandFacts* const command : All()) {
    EXPECT_FALSE(HelpTextOf(command->path).examples.empty()) << command->path;
  }
}

TEST_F(Help, ShowsNoFlagThatDoesNotExist) {
  for (const HelpText& text : HelpTexts()) {
    const auto all = All();
    const auto command = std::ranges::find(all, text.command, &CommandFacts::path);
    ASSERT_NE(command, all.end()) << text.command;
    for (const std::string_view flag : text.common) {
      EXPECT_TRUE(std::ranges::any_of((*command)->arguments,
                                      [&](const ArgumentFacts& argument) {
                                        return std::ranges::find(argument.names, flag) !=
                                               argument.names.end();
                                      }))
          << text.command << " has no " << flag;
    }
  }
}

// The words of a shell command: quotes and joined lines, and no more.
std::vector<std::string> ShellWords(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false;
  bool quoted = false;
  for (const char c : text) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (!quoted && (c == ' ' || c == '\n' || c == '\\')) {
      inside = false;
    } else {
      if (!inside) {
        words.emplace_back();
      }
      inside = true;
      words.back() += c;
    }
  }
  return words;
}

TEST_F(Help, ExamplesAreAcceptedByTheParser) {
  for (const HelpText& text : HelpTexts()) {
    for (const Example& example : text.examples) {
      std::string_view line = example.text;
      line.remove_prefix(line.find("dynosim"));
      std::vector<std::string> words = ShellWords(line.substr(0, line.find_first_of(">)")));
      words.erase(words.begin());
      std::ranges::reverse(words);  // the order in which the parser takes them
      CLI::App app("about", "dynosim");
      const Commands commands(app);
      EXPECT_NO_THROW(app.parse(words)) << example.text;
      EXPECT_TRUE(app.remaining(true).empty()) << example.text;
    }
  }
}

TEST_F(Help, SaysWhatANumberMayBe) {
  const auto all = LeafCommands(program_);
  const auto serve = std::ranges::find(all, "serve", &CommandFacts::path);
  ASSERT_NE(serve, all.end());
  const auto& arguments = (*serve)->arguments;
  const auto workers = std::ranges::find_if(
      arguments, [](const ArgumentFacts& a) { return a.names.back() == "--num-workers"; });
  ASSERT_NE(workers, arguments.end());
  EXPECT_EQ(workers->value, "N");
  EXPECT_EQ(workers->range, "1 - 4096");
}

}  // namespace
}  // namespace dynosim::cli
