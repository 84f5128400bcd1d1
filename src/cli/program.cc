// SPDX-License-Identifier: Apache-2.0
// Parsing with CLI11; its exceptions end here.
#include "cli/program.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "cli/commands.h"

namespace dynosim::cli {
namespace {

// Control characters would break the one line that an error is.
std::string OneLine(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

// The innermost command that was given, the program itself without one.
const CLI::App& GivenCommand(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
  }
  return *command;
}

int Run(int argc, const char* const* argv) {
  CLI::App app("Simulates LLM serving: predicts latency and throughput of a deployment.",
               "dynosim");
  const Commands commands(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> rest = app.remaining(true);
    return ReportError(rest.empty() ? Error{.where = "", .message = error.what()}
                                    : UnknownArgument(GivenCommand(app), rest.front()));
  }
  return commands.Run();
}

}  // namespace

int ReportError(const Error& error) {
  const std::string text = "dynosim: error: " + OneLine(error.Text()) + "\n";
  std::fputs(text.c_str(), stderr);
  return error.kind == ErrorKind::kUsage ? kExitUsage : kExitFailed;
}

Result<void> ParseArguments(CLI::App& command, std::vector<std::string> arguments) {
  command.set_help_flag();
  command.allow_extras();
  std::ranges::reverse(arguments);  // the order in which the parser takes them
  try {
    command.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    return UsageError("", error.what());
  }
  if (const std::vector<std::string> rest = command.remaining(); !rest.empty()) {
    return UsageError("", "unknown argument " + rest.front());
  }
  return {};
}

Result<void> Print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return FailedError("", "cannot write to the standard output");
  }
  return {};
}

int Show(std::string_view text) {
  const Result<void> printed = Print(text);
  return printed ? kExitOk : ReportError(printed.error());
}

int RunProgram(int argc, const char* const* argv) {
  try {
    return Run(argc, argv);
  } catch (const std::bad_alloc&) {
    return ReportError({.kind = ErrorKind::kFailed, .where = "", .message = "out of memory"});
  } catch (const std::exception& error) {
    return ReportError({.kind = ErrorKind::kFailed, .where = "", .message = error.what()});
  }
}

}  // namespace dynosim::cli
