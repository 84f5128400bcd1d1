// SPDX-License-Identifier: Apache-2.0
#include "workload/trace_sessions.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "workload/request.h"
#include "workload/trace_table.h"

namespace dynosim::workload {
namespace {

constexpr std::string_view kImplicitName = "request_";

// The line of an id that reads like the name of a row without an id.
std::optional<std::uint32_t> ImplicitLine(std::string_view id) {
  if (!id.starts_with(kImplicitName)) {
    return std::nullopt;
  }
  id.remove_prefix(kImplicitName.size());
  std::uint32_t line = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), line);
  if (error != std::errc{} || end != id.data() + id.size() || id[0] == '0') {
    return std::nullopt;
  }
  return line;
}

}  // namespace

std::uint32_t TraceSessions::Find(TraceTable& table, std::optional<std::string_view> id,
                                  std::uint32_t line) {
  if (id) {
    return FindNamed(table, *id, line);
  }
  if (!by_line_.empty()) {
    if (const std::uint32_t* session = by_line_.Find(line)) {
      return *session;
    }
  }
  return New(table, line, kNone);
}

std::uint32_t TraceSessions::FindNamed(TraceTable& table, std::string_view id, std::uint32_t line) {
  const std::string name(id);
  if (const std::uint32_t* session = by_name_.Find(name)) {
    return *session;
  }
  const std::optional<std::uint32_t> implicit = ImplicitLine(id);
  if (implicit) {
    // Sessions are in the order of their first lines.
    const auto at = std::lower_bound(
        table.sessions.begin(), table.sessions.end(), *implicit,
        [](const TraceSession& session, std::uint32_t wanted) { return session.line < wanted; });
    if (at != table.sessions.end() && at->line == *implicit && at->name == kNone) {
      return static_cast<std::uint32_t>(at - table.sessions.begin());
    }
  }
  table.names.push_back(name);
  const std::uint32_t session =
      New(table, line, static_cast<std::uint32_t>(table.names.size() - 1));
  by_name_.TryInsert(name, session);
  if (implicit) {
    by_line_.TryInsert(*implicit, session);
  }
  return session;
}

std::uint32_t TraceSessions::New(TraceTable& table, std::uint32_t line, std::uint32_t name) {
  table.sessions.push_back({.line = line, .name = name});
  last_timestamp_ms_.push_back(std::numeric_limits<double>::quiet_NaN());
  return static_cast<std::uint32_t>(table.sessions.size() - 1);
}

std::optional<double> TraceSessions::LastTimestamp(std::uint32_t session) const {
  const double last = last_timestamp_ms_[session];
  return std::isnan(last) ? std::nullopt : std::optional(last);
}

void TraceSessions::Append(TraceTable& table, std::uint32_t session, TraceRow row,
                           std::optional<double> timestamp_ms) {
  const auto index = static_cast<std::uint32_t>(table.rows.size());
  TraceSession& entry = table.sessions[session];
  if (entry.turns == 0) {
    entry.first_row = index;
    entry.first_ms = timestamp_ms.value_or(entry.first_ms);
  } else {
    table.rows[entry.last_row].next_row = index;
    table.single_turns = false;
  }
  row.session = session;
  row.turn = entry.turns;
  entry.last_row = index;
  ++entry.turns;
  table.rows.push_back(row);
  if (timestamp_ms) {
    last_timestamp_ms_[session] = *timestamp_ms;
  }
}

}  // namespace dynosim::workload
