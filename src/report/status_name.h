// SPDX-License-Identifier: Apache-2.0
// How reports call the ways in which a request ends.
#pragma once

#include <string_view>

#include "workload/request.h"

namespace dynosim::report {

inline std::string_view StatusName(workload::TerminalStatus status) {
  switch (status) {
    case workload::TerminalStatus::kCompleted:
      return "completed";
    case workload::TerminalStatus::kRejected:
      return "rejected";
    case workload::TerminalStatus::kCanceled:
      return "canceled";
    case workload::TerminalStatus::kFailed:
      return "failed";
  }
  return "";
}

}  // namespace dynosim::report
