// SPDX-License-Identifier: Apache-2.0
// `dynosim estimate`: one question to the performance model, or a file of them.
// `dynosim models` and `dynosim systems`: what the installed data covers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/estimate_query.h"
#include "perfdb/catalog.h"

namespace CLI {
class App;
}

namespace dynosim::cli {

struct EstimateOptions {
  EstimateQuery query;
  std::string phase;  // prefill, decode, capacity, operations
  std::optional<double> memory_fraction;
  std::string queries;                // file with a JSON object a line
  std::vector<std::string> perfdata;  // folders in front of the usual ones
  bool breakdown = false;
  bool json = false;
};

void AddEstimateCommand(CLI::App& app, EstimateOptions& options);
int RunEstimate(const EstimateOptions& options);

// The given data folders, then the usual ones.
perfdb::Catalog OpenCatalog(std::vector<std::string> folders);

struct ListOptions {
  std::vector<std::string> perfdata;
  bool json = false;
};
void AddListCommands(CLI::App& app, ListOptions& options);
int RunModels(const ListOptions& options);
int RunSystems(const ListOptions& options);

}  // namespace dynosim::cli
