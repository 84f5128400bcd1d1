// SPDX-License-Identifier: Apache-2.0
// The text table of a run (chapter 50, section 7): latency rows, rates, and what follows the box.
#pragma once

#include <string>

#include "report/summary.h"

namespace dynosim::report {

// Lines joined by LF without a final newline; UTF-8.
std::string RenderTable(const Summary& summary);

}  // namespace dynosim::report
