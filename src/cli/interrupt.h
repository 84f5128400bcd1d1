// SPDX-License-Identifier: Apache-2.0
// Interruption by the user: the first SIGINT or SIGTERM asks the run to stop, a second one ends the
// program at once.
#pragma once

namespace dynosim::cli {

void WatchInterrupts();
bool Interrupted();

}  // namespace dynosim::cli
