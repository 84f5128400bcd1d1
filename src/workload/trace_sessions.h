// SPDX-License-Identifier: Apache-2.0
// TraceSessions: groups the rows of a trace into the sessions of a TraceTable while it is read.
// A row without a session id is a session of its own, called request_<line>; a row that names such
// a session belongs to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/flat_map.h"
#include "workload/trace_table.h"

namespace dynosim::workload {

class TraceSessions {
 public:
  // Index of the row's session in the table; a new session has no turns yet.
  std::uint32_t Find(TraceTable& table, std::optional<std::string_view> id, std::uint32_t line);

  // The last timestamp that a row of the session had.
  std::optional<double> LastTimestamp(std::uint32_t session) const;

  // Makes `row` the last row of the table and the next turn of the session.
  void Append(TraceTable& table, std::uint32_t session, TraceRow row,
              std::optional<double> timestamp_ms);

 private:
  std::uint32_t New(TraceTable& table, std::uint32_t line, std::uint32_t name);
  std::uint32_t FindNamed(TraceTable& table, std::string_view id, std::uint32_t line);

  FlatMap<std::string, std::uint32_t> by_name_;
  FlatMap<std::uint32_t, std::uint32_t> by_line_;  // sessions that some id names request_<line>
  std::vector<double> last_timestamp_ms_;          // by session; NaN: none
};

}  // namespace dynosim::workload
