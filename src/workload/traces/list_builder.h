// SPDX-License-Identifier: Apache-2.0
// ListBuilder: makes a TraceTable of requests that do not depend on each other. A request is a
// session of its own, called after its line.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "workload/block_names.h"
#include "workload/trace_sessions.h"
#include "workload/trace_table.h"

namespace dynosim::workload {

struct ListRow {
  std::uint32_t line = 0;
  std::optional<double> timestamp_ms{};
  std::uint64_t input_tokens = 0;
  std::uint64_t output_tokens = 0;
};

class ListBuilder {
 public:
  explicit ListBuilder(std::uint64_t block_size) { table_.trace_block_size = block_size; }

  // Adds a request whose prompt is made of the blocks `ids`; ids beyond its length are ignored.
  // Returns the problem when there is one.
  std::optional<std::string> Add(const ListRow& row, std::span<const std::uint64_t> ids);
  // Adds a request whose prompt shares nothing with others. A list has either kind only.
  std::optional<std::string> AddUnique(const ListRow& row);

  // Moves the earliest time to 0, for formats whose times have no zero of their own.
  void StartAtZero();

  TraceTable Take() { return std::move(table_); }
  TraceOddities& oddities() { return oddities_; }

 private:
  std::optional<std::string> CheckLengths(const ListRow& row) const;
  void Append(const ListRow& row, std::uint32_t node);

  TraceTable table_;
  TraceOddities oddities_;
  TraceSessions sessions_;
  IdNumbers id_numbers_;
  std::vector<std::uint32_t> numbers_;  // of the current request
};

// Times of a trace in nanoseconds since whenever, as milliseconds since the first one that was
// asked for: large times keep all their digits.
class RelativeTime {
 public:
  double Ms(std::int64_t ns) {
    constexpr double kNsPerMs = 1e6;
    origin_ns_ = origin_ns_.value_or(ns);
    return static_cast<double>(ns - *origin_ns_) / kNsPerMs;
  }

 private:
  std::optional<std::int64_t> origin_ns_;
};

}  // namespace dynosim::workload
