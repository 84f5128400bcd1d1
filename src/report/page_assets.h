// SPDX-License-Identifier: Apache-2.0
// Files of src/report/page/ and third_party/uplot/ as they were at build time (cmake/embed.cmake).
#pragma once

#include <string_view>

namespace dynosim::report {

// Content of a file by its name without the folder; the name must be one of the list in
// CMakeLists.txt.
std::string_view PageAsset(std::string_view name);

}  // namespace dynosim::report
