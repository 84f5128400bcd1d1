// SPDX-License-Identifier: Apache-2.0
// `dynosim predict`: runs the deployment that a YAML document describes and writes its report.
// `dynosim schema`: the JSON schema of that document.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace dynosim::cli {

struct PredictOptions {
  std::string config;
  std::string stack = "engine";
  std::string schema_of = "predict";   // of the command schema
  std::vector<std::string> overrides;  // in the order of the command line
  std::string output_directory = "./aisimulate-output";
  bool overwrite = false;
  std::string format = "table";
  bool capture_per_request = false;
  std::string report_html;  // paths; empty: not written
  std::string trace_out;
  bool pass_by_pass = false;
  std::string unavailable;  // a known option that this version does not have; empty for none
};

// `options` must outlive the command.
CLI::App* AddPredictCommand(CLI::App& app, PredictOptions& options);
CLI::App* AddSchemaCommand(CLI::App& app, PredictOptions& options);

// Both return the exit code.
int RunPredict(const PredictOptions& options);
int RunSchema(const PredictOptions& options);

}  // namespace dynosim::cli
