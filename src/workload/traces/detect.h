// SPDX-License-Identifier: Apache-2.0
// Guesses the format of a trace file from its first lines.
#pragma once

#include <string>

#include "base/result.h"

namespace dynosim::workload {

// A name of the table of formats. Plain Mooncake and mooncake-delta look the same: mooncake. An
// error when nothing fits.
Result<std::string> DetectFormat(const std::string& path);

}  // namespace dynosim::workload
