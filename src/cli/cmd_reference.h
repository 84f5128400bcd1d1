// SPDX-License-Identifier: Apache-2.0
// `dynosim completion`, and the hidden `dynosim reference`, which writes docs/reference.md.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace dynosim::cli {

struct CompletionOptions {
  std::string shell;
};

void AddCompletionCommand(CLI::App& app, CompletionOptions& options);
// `app` is the whole program.
int RunCompletion(const CLI::App& app, const CompletionOptions& options);

void AddReferenceCommand(CLI::App& app);
int RunReference(const CLI::App& app);

}  // namespace dynosim::cli
