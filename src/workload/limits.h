// SPDX-License-Identifier: Apache-2.0
// Bounds of every workload, and the checks of the options that all kinds of workload share.
// The bounds keep sums of lengths and numbers of requests inside their integer types.
#pragma once

#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "base/result.h"
#include "workload/spec.h"

namespace dynosim::workload {

// Tokens of one prompt or one output.
inline constexpr std::uint64_t kMaxTokens = std::uint64_t{1} << 48;
// Requests of one workload.
inline constexpr std::uint64_t kMaxRequests = (std::uint64_t{1} << 31) - 1;

inline Result<void> CheckConcurrency(const WorkloadSpec& workload) {
  if (workload.replay_concurrency && *workload.replay_concurrency < 1) {
    return UsageError("--replay-concurrency",
                      fmt::format("must be at least 1, got {}", *workload.replay_concurrency));
  }
  return {};
}

// Not looked at with a concurrency cap, where times of the workload play no role.
inline Result<void> CheckSpeedup(const WorkloadSpec& workload) {
  const double speedup = workload.arrival_speedup_ratio;
  if (!workload.replay_concurrency && !(std::isfinite(speedup) && speedup > 0.0)) {
    return UsageError("--arrival-speedup-ratio",
                      fmt::format("must be a finite positive number, got {}", speedup));
  }
  return {};
}

}  // namespace dynosim::workload
