// SPDX-License-Identifier: Apache-2.0
// The `explain` command: prints the routing decisions of one request of a report.
#pragma once

#include <string>

namespace dynosim::cli {

// `request` is the uuid, the request_id or the number (1, 2, ... in authored order) of a row.
// Returns the exit code.
int RunExplain(const std::string& report, const std::string& request);

}  // namespace dynosim::cli
