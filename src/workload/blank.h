// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace dynosim::workload {

// Nothing but white space, or nothing at all.
inline bool IsBlank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos;
}

}  // namespace dynosim::workload
