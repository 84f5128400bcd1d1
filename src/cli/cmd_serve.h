// SPDX-License-Identifier: Apache-2.0
// `dynosim serve`, `mocker` and `frontend`: live serving. Each returns the exit code.
#pragma once

#include "cli/serve_options.h"

namespace dynosim::cli {

int RunServe(const ServeFlags& flags);
int RunMocker(const MockerFlags& flags);
int RunFrontend(const FrontendFlags& flags);

}  // namespace dynosim::cli
