// SPDX-License-Identifier: Apache-2.0
// Flags of the reference's mock worker (chapter 95, section 4) that mean nothing here. Each is
// refused by its name with what to use instead, and none appears in the help.
#pragma once

#include <cstdint>

namespace CLI {
class App;
}

namespace dynosim::cli {

enum class LiveCommand : std::uint8_t { kServe, kMocker };

void RefuseWorkerFlags(CLI::App& command, LiveCommand which);

}  // namespace dynosim::cli
