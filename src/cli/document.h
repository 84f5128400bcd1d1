// SPDX-License-Identifier: Apache-2.0
// What the commands that read a YAML document have in common: the options -c, --set and --stack,
// the document with its overrides, and standard output.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "scenario/prediction.h"

namespace CLI {
class App;
}

namespace dynosim::cli {

// The strings must outlive the command.
void AddDocumentOptions(CLI::App& command, std::string& config, std::vector<std::string>& overrides,
                        std::string& stack);
void AddStackOption(CLI::App& command, std::string& stack);

Result<scenario::Stack> ReadStack(const std::string& name);

// The mapping in a file, with the overrides of the command line.
Result<Json> ReadDocument(const std::string& path, const std::vector<std::string>& overrides);
// The same from YAML text; errors name `where`.
Result<Json> ReadDocumentText(std::string_view text, const std::string& where,
                              const std::vector<std::string>& overrides);

}  // namespace dynosim::cli
