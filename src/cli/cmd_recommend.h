// SPDX-License-Identifier: Apache-2.0
// `dynosim recommend`: searches the deployments that a YAML document describes for the best ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace dynosim::cli {

struct RecommendOptions {
  std::string config;
  std::string stack = "engine";
  std::vector<std::string> overrides;  // in the order of the command line
  std::string output_directory = "./aisimulate-output";
  bool overwrite = false;
  bool resume = false;
  std::string format = "table";
  std::uint64_t top = 20;
  std::string report_html;  // path of a page; empty: not written
};

// `options` must outlive the command.
CLI::App* AddRecommendCommand(CLI::App& app, RecommendOptions& options);

// Returns the exit code.
int RunRecommend(const RecommendOptions& options);

}  // namespace dynosim::cli
