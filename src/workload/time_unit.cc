// SPDX-License-Identifier: Apache-2.0
#include "workload/time_unit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>

#include "workload/trace_table.h"

namespace dynosim::workload {
namespace {

// Traces with fewer sessions say little about their density.
constexpr std::size_t kFewSessions = 10;
// Times since 1970 in seconds are at least this for anything after 2001.
constexpr double kEpochSeconds = 1e9;
// No recorded service takes this many requests in a millisecond, or waits this long for one.
constexpr double kDenseGapMs = 0.02;
constexpr double kSparseGapMs = 600'000.0;

}  // namespace

const TimeUnit* FindTimeUnit(std::string_view name) {
  const auto* const at = std::find_if(
      kTimeUnits.begin(), kTimeUnits.end(),
      [name](const TimeUnit& unit) { return unit.name == name || unit.long_name == name; });
  return at == kTimeUnits.end() ? nullptr : at;
}

const TimeUnit& GuessTimeUnit(const TraceTable& table) {
  const TimeUnit& seconds = kTimeUnits[0];
  const TimeUnit& milliseconds = kTimeUnits[1];
  const TimeUnit& microseconds = kTimeUnits[2];
  const TimeUnit& nanoseconds = kTimeUnits[3];
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  for (const TraceSession& session : table.sessions) {
    if (!std::isnan(session.first_ms)) {
      least = std::min(least, session.first_ms);
      most = std::max(most, session.first_ms);
    }
  }
  if (!(least <= most)) {
    return milliseconds;
  }
  // Times since 1970: each unit is a thousand of the next.
  if (least >= kEpochSeconds) {
    return least < kEpochSeconds * 1e2   ? seconds
           : least < kEpochSeconds * 1e5 ? milliseconds
           : least < kEpochSeconds * 1e8 ? microseconds
                                         : nanoseconds;
  }
  if (table.sessions.size() < kFewSessions || most == least) {
    return milliseconds;
  }
  const double gap = (most - least) / static_cast<double>(table.sessions.size() - 1);
  if (gap < kDenseGapMs) {
    return seconds;
  }
  if (gap > kSparseGapMs) {
    return gap / 1e6 > kDenseGapMs && gap / 1e3 > kSparseGapMs ? nanoseconds : microseconds;
  }
  return milliseconds;
}

}  // namespace dynosim::workload
