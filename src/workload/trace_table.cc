// SPDX-License-Identifier: Apache-2.0
#include "workload/trace_table.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "base/time.h"
#include "workload/limits.h"
#include "workload/spec.h"

namespace dynosim::workload {
namespace {

Result<void> CheckSessions(const std::string& path, bool needs_time, const TraceTable& table) {
  for (std::uint32_t s = 0; s < table.sessions.size(); ++s) {
    const TraceSession& session = table.sessions[s];
    const auto fail = [&](std::string_view problem) -> Result<void> {
      return FailedError(fmt::format("{}:{}", path, session.line),
                         fmt::format("session {} {}", table.SessionName(s), problem));
    };
    if (needs_time && std::isnan(session.first_ms)) {
      return fail(
          "has no first_arrival_timestamp_ms: its first row needs a timestamp, or the run needs "
          "replay_concurrency");
    }
    if (!std::isnan(session.first_ms) &&
        !(std::isfinite(session.first_ms) && session.first_ms >= 0.0)) {
      return fail(fmt::format("has an invalid first_arrival_timestamp_ms {}", session.first_ms));
    }
    std::uint32_t row = session.first_row;
    for (std::uint32_t turn = 0; turn < session.turns; ++turn) {
      if (table.rows[row].input_tokens == 0) {
        return fail(fmt::format("turn {} must have a positive input_length", turn));
      }
      row = table.rows[row].next_row;
    }
  }
  return {};
}

// Gaps between the starts of sessions, in order of time.
void NoteOrder(const TraceTable& table, TraceOddities& oddities) {
  bool sorted = true;
  double before = -std::numeric_limits<double>::infinity();
  for (const TraceSession& session : table.sessions) {
    if (session.first_ms < before) {
      oddities.unsorted.Note(session.line);
      sorted = false;
    }
    before = session.first_ms;
  }
  const auto note_gaps = [&](auto&& time_and_line) {
    for (std::size_t i = 1; i < table.sessions.size(); ++i) {
      if (time_and_line(i).first - time_and_line(i - 1).first > kLongGapMs) {
        oddities.long_gap.Note(time_and_line(i).second);
      }
    }
  };
  if (sorted) {
    note_gaps([&](std::size_t i) {
      return std::pair(table.sessions[i].first_ms, table.sessions[i].line);
    });
    return;
  }
  std::vector<std::pair<double, std::uint32_t>> starts;
  starts.reserve(table.sessions.size());
  for (const TraceSession& session : table.sessions) {
    starts.emplace_back(session.first_ms, session.line);
  }
  std::sort(starts.begin(), starts.end());
  note_gaps([&](std::size_t i) { return starts[i]; });
}

}  // namespace

std::string TraceTable::SessionName(std::uint32_t session) const {
  const TraceSession& entry = sessions[session];
  return entry.name == kNone ? fmt::format("request_{}", entry.line) : names[entry.name];
}

Result<void> FinishTrace(const std::string& path, const WorkloadSpec& workload, TraceTable& table,
                         TraceOddities& oddities) {
  if (table.rows.empty()) {
    return FailedError(path, "the trace contains no requests");
  }
  const bool timed = !workload.replay_concurrency;
  if (timed) {
    double least = std::numeric_limits<double>::infinity();
    for (const TraceSession& session : table.sessions) {
      least = std::min(least, session.first_ms);
      if (session.first_ms < 0.0) {
        oddities.negative.Note(session.line);
      }
    }
    for (TraceSession& session : table.sessions) {
      session.first_ms -= least;
    }
  }
  DYNO_TRY_VOID(CheckSessions(path, timed, table));
  if (timed) {
    NoteOrder(table, oddities);
    const double speedup = workload.arrival_speedup_ratio;
    for (TraceSession& session : table.sessions) {
      session.first_ms = WithinTime(session.first_ms / speedup);
    }
    for (TraceRow& row : table.rows) {
      row.delay_ms = WithinTime(row.delay_ms / speedup);
    }
  }
  return {};
}

std::vector<std::string> OddityWarnings(const std::string& path, const TraceOddities& oddities) {
  std::vector<std::string> warnings;
  const auto warn = [&](const Oddity& oddity, std::string_view what) {
    if (oddity.count > 0) {
      warnings.push_back(fmt::format("{}:{}: {} ({} {})", path, oddity.first_line, what,
                                     oddity.count, oddity.count == 1 ? "row" : "rows"));
    }
  };
  warn(oddities.unsorted,
       "timestamp is earlier than the one before; requests are replayed in order of time");
  warn(oddities.negative, "timestamp is negative; the earliest request is moved to time 0");
  warn(oddities.long_gap,
       "more than a day passes before this row; timestamps and delays are in milliseconds");
  warn(oddities.surplus_ids, "hash_ids has more ids than input_length needs; the rest is ignored");
  return warnings;
}

}  // namespace dynosim::workload
