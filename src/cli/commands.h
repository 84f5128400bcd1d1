// SPDX-License-Identifier: Apache-2.0
// Every command with its options.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace CLI {
class App;
}

namespace dynosim::cli {

class Commands {
 public:
  // Declares them, with the help formatter and the flags of the program itself. `app` is parsed
  // afterwards; both live equally long.
  explicit Commands(CLI::App& app);
  ~Commands();
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  // Runs the command that was given and returns the exit code.
  int Run() const;

 private:
  struct Options;
  CLI::App& app_;
  std::unique_ptr<Options> options_;
};

// The error of an argument that no option took, with the nearest name as a hint.
Error UnknownArgument(const CLI::App& command, const std::string& argument);

}  // namespace dynosim::cli
