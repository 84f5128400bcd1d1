// SPDX-License-Identifier: Apache-2.0
// What runs: the version, how it was built, and which measured data it finds.
#pragma once

#include <string>

namespace dynosim::cli {

// Lines without a final newline; the first is "dynosim <version>".
std::string VersionText();

}  // namespace dynosim::cli
