// SPDX-License-Identifier: Apache-2.0
// `dynosim serve`, `mocker` and `frontend`: live serving.
#pragma once

#include "cli/serve_options.h"

namespace CLI {
class App;
}

namespace dynosim::cli {

class LiveCommands {
 public:
  // `app` is parsed afterwards and outlives this object.
  explicit LiveCommands(CLI::App& app);

  // One of the commands was given.
  bool parsed() const;
  // Returns the exit code.
  int Run() const;

 private:
  CLI::App* serve_;
  CLI::App* mocker_;
  CLI::App* frontend_;
  ServeFlags serve_flags_;
  MockerFlags mocker_flags_;
  FrontendFlags frontend_flags_;
};

}  // namespace dynosim::cli
