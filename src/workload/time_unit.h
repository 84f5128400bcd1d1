// SPDX-License-Identifier: Apache-2.0
// Units of time in traces. Mooncake traces are in milliseconds, but many files with their fields
// are not; size and density of the timestamps usually give it away.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "workload/trace_table.h"

namespace dynosim::workload {

struct TimeUnit {
  std::string_view name;
  std::string_view long_name;
  double ms = 1.0;
};

inline constexpr std::array kTimeUnits = {
    TimeUnit{.name = "s", .long_name = "seconds", .ms = 1e3},
    TimeUnit{.name = "ms", .long_name = "milliseconds", .ms = 1.0},
    TimeUnit{.name = "us", .long_name = "microseconds", .ms = 1e-3},
    TimeUnit{.name = "ns", .long_name = "nanoseconds", .ms = 1e-6}};

// nullptr for an unknown name.
const TimeUnit* FindTimeUnit(std::string_view name);

// The unit that the first times of the sessions seem to have; milliseconds unless something speaks
// against it. `table` is as read.
const TimeUnit& GuessTimeUnit(const TraceTable& table);

}  // namespace dynosim::workload
