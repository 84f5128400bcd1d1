// SPDX-License-Identifier: Apache-2.0
// The directory that `predict` and `recommend` write to. It must be empty unless the user allows to
// replace the files that this program writes; nothing else is ever removed.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace dynosim::cli {

// Checks the directory, removes old results when `overwrite` is set, and makes it when missing.
// `inputs` are files that the run reads and that must not be among the results.
Result<void> PrepareOutputDirectory(const std::string& path, bool overwrite,
                                    const std::vector<std::string>& inputs);

// A file inside it.
std::string InDirectory(const std::string& directory, const std::string& file);

}  // namespace dynosim::cli
