// SPDX-License-Identifier: Apache-2.0
// `dynosim trace`: looks at trace files without simulating. check tells whether a file can be
// replayed and what is odd about it, stats describes it, convert writes it as Mooncake lines.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace dynosim::cli {

struct TraceOptions {
  std::string action;  // check, stats or convert; empty: another command
  std::vector<std::string> files;
  std::string format;  // empty: guessed
  std::optional<std::int64_t> block_size{};
  std::string time_unit;  // empty: as the format says
  std::string output;     // convert: empty for the standard output
  bool fix = false;       // convert: order and units
  bool json = false;      // check and stats
};

// `options` must outlive the command.
void AddTraceCommand(CLI::App& app, TraceOptions& options);

// Returns the exit code.
int RunTrace(const TraceOptions& options);

}  // namespace dynosim::cli
