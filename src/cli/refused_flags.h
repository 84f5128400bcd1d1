// SPDX-License-Identifier: Apache-2.0
// Flags of the reference's mock worker (chapter 95, section 4) that mean nothing here. Each is
// refused by its name with what to use instead, and none appears in the help.
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"

namespace dynosim::cli {

// The refusal of a flag that `command` does not know; empty for other flags and commands.
std::optional<Error> RefusalOf(std::string_view command, std::string_view flag);

}  // namespace dynosim::cli
