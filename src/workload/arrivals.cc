// SPDX-License-Identifier: Apache-2.0
#include "workload/arrivals.h"

#include <cstdint>

namespace dynosim::workload {

ArrivalProcess ArrivalProcess::FixedInterval(double interval_ms) {
  // Through the rate: the two divisions do not always give the interval back, and results depend on
  // the rounded gap.
  const double gap_ms = interval_ms > 0.0 ? 1000.0 / (1000.0 / interval_ms) : 0.0;
  return {false, gap_ms, 0};
}

ArrivalProcess ArrivalProcess::Poisson(double requests_per_second, std::uint64_t seed) {
  return {true, 1000.0 / requests_per_second, seed};
}

}  // namespace dynosim::workload
