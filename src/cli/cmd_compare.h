// SPDX-License-Identifier: Apache-2.0
// `dynosim compare A.json B.json`: what differs between two reports, or between a prediction and an
// AIPerf measurement. Exit code 0: within the tolerance; 1: not; 2: the files cannot be compared.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace dynosim::cli {

struct CompareCommand {
  std::string a, b;
  std::string tolerance;             // a ratio, or a number with %
  std::vector<std::string> metrics;  // parts of names
  bool all = false;
  bool json = false;
  CLI::App* command = nullptr;
};

// `options` must outlive the command.
void AddCompareCommand(CLI::App& app, CompareCommand& options);

// Returns the exit code.
int RunCompare(const CompareCommand& options);

}  // namespace dynosim::cli
