// SPDX-License-Identifier: Apache-2.0
// The command line as a whole: global flags, choice of the subcommand, error lines and exit codes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
}

namespace dynosim::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  // a run or its input failed
inline constexpr int kExitUsage = 2;   // command line or configuration
inline constexpr int kExitInterrupted = 130;

// Runs the program and returns its exit code.
int RunProgram(int argc, const char* const* argv);

// Prints `dynosim: error: ...` on stderr and returns the exit code of the error.
int ReportError(const Error& error);

// Fills the options of `command` for callers that are no program: no help, and errors are returned.
Result<void> ParseArguments(CLI::App& command, std::vector<std::string> arguments);

// Writes to standard output, at once.
Result<void> Print(std::string_view text);
// The same as the whole of a command; returns its exit code.
int Show(std::string_view text);

}  // namespace dynosim::cli
