// SPDX-License-Identifier: Apache-2.0
// What the declarations of flags do not say: examples, and which flags of a long command the short
// help shows.
#pragma once

#include <span>
#include <string_view>

namespace dynosim::cli {

struct Example {
  std::string_view text;
  // How the test that runs the reference page treats it, if not like any command.
  std::string_view mark = {};
};

struct HelpText {
  std::string_view command;  // its path, such as "trace check"
  std::span<const Example> examples;
  // Flags of `--help`, the others are in `--help-all`; none: all of them.
  std::span<const std::string_view> common;
};

// The text of a command, with neither examples nor flags when it has none.
HelpText HelpTextOf(std::string_view command);
std::span<const HelpText> HelpTexts();

}  // namespace dynosim::cli
