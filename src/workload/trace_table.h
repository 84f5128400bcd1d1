// SPDX-License-Identifier: Apache-2.0
// TraceTable: a trace as sessions of turns, the form that every non-agentic format is read into.
// Rows keep the order of the file, and their index is the request id. Prompts are interned while
// reading (fixed prompts) or kept as block ids (cumulative prompts, which depend on what was
// generated). FinishTrace checks the whole trace and makes the times relative.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/result.h"
#include "workload/block_names.h"
#include "workload/request.h"
#include "workload/spec.h"

namespace dynosim::workload {

struct TraceRow {
  std::uint64_t input_tokens = 0;  // cumulative prompts: the new tokens of this turn
  std::uint64_t output_tokens = 0;
  double delay_ms = 0.0;       // after the previous turn; the first turn's is 0
  std::uint32_t node = kNone;  // fixed prompts: last run of the prompt
  std::uint32_t session = kNone;
  std::uint32_t turn = 0;
  std::uint32_t next_row = kNone;  // of the same session
  std::uint32_t extras = kNone;    // index into TraceTable::extras
};

// What few rows carry.
struct RowExtras {
  std::int32_t priority = 0;
  std::uint32_t strict_priority = 0;
  std::uint32_t policy_class = kNone;
  bool explicit_output = false;      // the tokens output_tokens_begin .. + output_tokens are given
  std::uint32_t whole_node = kNone;  // fixed prompts: last run of prompt and given output
  std::uint64_t output_tokens_begin = 0;
};

struct TraceSession {
  double first_ms = std::numeric_limits<double>::quiet_NaN();  // NaN: the trace does not say
  std::uint32_t first_row = 0;
  std::uint32_t last_row = 0;
  std::uint32_t turns = 0;
  std::uint32_t line = 0;      // of the first row
  std::uint32_t name = kNone;  // index into TraceTable::names; kNone: request_<line>
};

struct TraceTable {
  std::vector<TraceRow> rows;
  std::vector<TraceSession> sessions;
  std::vector<RowExtras> extras;
  std::vector<std::string> names;
  std::vector<std::string> policy_classes;
  std::vector<std::uint32_t> output_token_ids;  // all given outputs, one after the other

  bool cumulative = false;
  std::uint64_t trace_block_size = 0;
  BlockNames block_names;  // fixed prompts
  // Cumulative prompts: numbers of all block ids; those of row r end at block_ids_end[r].
  std::vector<std::uint32_t> block_ids;
  std::vector<std::uint64_t> block_ids_end;
  std::uint32_t distinct_ids = 0;

  bool explicit_outputs = false;  // some row gives its output tokens
  bool single_turns = true;       // no session has a second turn

  std::string SessionName(std::uint32_t session) const;
};

// One kind of oddity in a trace, for one warning line: where it was first seen and how often.
struct Oddity {
  std::uint32_t first_line = 0;
  std::uint64_t count = 0;
  void Note(std::uint32_t line) {
    first_line = count == 0 ? line : first_line;
    ++count;
  }
};

struct TraceOddities {
  Oddity unsorted;
  Oddity negative;
  Oddity long_gap;
  Oddity surplus_ids;
};

// A pause of more than this in a trace usually means a wrong unit of time.
inline constexpr double kLongGapMs = 86'400'000.0;

// Checks that need the whole trace, and, without a concurrency cap, makes the first arrival 0 and
// divides all times by the speedup. Notes what is odd about the order of time.
Result<void> FinishTrace(const std::string& path, const WorkloadSpec& workload, TraceTable& table,
                         TraceOddities& oddities);

// One line per kind.
std::vector<std::string> OddityWarnings(const std::string& path, const TraceOddities& oddities);

}  // namespace dynosim::workload
