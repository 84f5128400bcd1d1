// SPDX-License-Identifier: Apache-2.0
#include "cli/cmd_reference.h"

#include <CLI/CLI.hpp>

#include "cli/command_tree.h"
#include "cli/completion.h"
#include "cli/program.h"
#include "cli/reference.h"

namespace dynosim::cli {

void AddCompletionCommand(CLI::App& app, CompletionOptions& options) {
  app.add_subcommand("completion", "Prints the completion script of a shell")
      ->add_option("shell", options.shell, "bash, zsh or fish")
      ->type_name("SHELL")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->required();
}

int RunCompletion(const CLI::App& app, const CompletionOptions& options) {
  const CommandFacts program = DescribeCommand(app);
  return Show(options.shell == "bash"  ? BashCompletion(program)
              : options.shell == "zsh" ? ZshCompletion(program)
                                       : FishCompletion(program));
}

void AddReferenceCommand(CLI::App& app) {
  app.add_subcommand("reference", "Prints docs/reference.md")->group("");
}

int RunReference(const CLI::App& app) { return Show(ReferencePage(DescribeCommand(app))); }

}  // namespace dynosim::cli
