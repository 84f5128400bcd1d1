// SPDX-License-Identifier: Apache-2.0
// `dynosim recommend`: searches the deployments that a YAML document describes for the best ones.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/recommend_session.h"

namespace CLI {
class App;
}

namespace dynosim::cli {

// `options` must outlive the command.
CLI::App* AddRecommendCommand(CLI::App& app, RecommendOptions& options);

// Of the command line, without program and command name. Errors: an argument that is none.
Result<RecommendOptions> ParseRecommendArguments(std::vector<std::string> arguments);

// Returns the exit code.
int RunRecommend(const RecommendOptions& options);

}  // namespace dynosim::cli
