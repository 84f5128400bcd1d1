// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/mooncake.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/flat_map.h"
#include "base/numeric.h"
#include "base/result.h"
#include "base/text_file.h"
#include "workload/block_names.h"
#include "workload/limits.h"
#include "workload/spec.h"
#include "workload/trace_sessions.h"
#include "workload/trace_table.h"
#include "workload/traces/contents.h"
#include "workload/traces/json_rows.h"
#include "workload/traces/mooncake_row.h"

namespace dynosim::workload {
namespace {

// Turns lines into rows of a table, one after the other.
class MooncakeReader {
 public:
  // `bytes` is the size of the trace. Room is reserved for the usual density of rows and ids; what
  // is not used stays untouched address space.
  MooncakeReader(std::uint64_t block_size, bool delta, std::size_t bytes) {
    table_.trace_block_size = block_size;
    table_.cumulative = delta;
    table_.rows.reserve(bytes / 64);
    table_.sessions.reserve(bytes / 64);
    if (!delta) {
      table_.block_names.Reserve(bytes / 8);
    }
  }

  // Checks the line's own rules; a problem is recorded in `rows`.
  bool Add(const MooncakeRow& row, JsonRows& rows);

  TraceTable TakeTable() {
    table_.distinct_ids = id_numbers_.size();
    return std::move(table_);
  }
  TraceOddities& Oddities() { return oddities_; }

 private:
  bool CheckLengths(const MooncakeRow& row, JsonRows& rows, std::uint64_t& input_tokens);
  bool FindDelay(const MooncakeRow& row, JsonRows& rows, std::uint32_t session, double& delay_ms);
  bool AddPrompt(const MooncakeRow& row, JsonRows& rows, TraceRow& out);
  void AddExtras(const MooncakeRow& row, TraceRow& out);

  TraceTable table_;
  TraceOddities oddities_;
  TraceSessions sessions_;
  IdNumbers id_numbers_;
  FlatMap<std::string, std::uint32_t> policy_classes_;
  std::vector<std::uint32_t> numbers_;  // of the current line's ids
};

bool MooncakeReader::CheckLengths(const MooncakeRow& row, JsonRows& rows,
                                  std::uint64_t& input_tokens) {
  if (!row.hash_ids.present) {
    return rows.Fail("hash_ids is missing");
  }
  const std::uint64_t capacity = SaturatingMultiply(row.hash_ids.size, table_.trace_block_size);
  input_tokens = row.input_length.value_or(capacity);
  if (input_tokens > capacity) {
    return rows.Fail(
        fmt::format("input_length {} exceeds the capacity {} of its hash_ids ({} ids of {} tokens)",
                    input_tokens, capacity, row.hash_ids.size, table_.trace_block_size));
  }
  if (input_tokens > kMaxTokens) {
    return rows.Fail(
        fmt::format("input_length must be at most {}, got {}", kMaxTokens, input_tokens));
  }
  if (!row.output_length) {
    return rows.Fail("output_length is missing");
  }
  if (row.output_token_ids.present && row.output_token_ids.size != *row.output_length) {
    return rows.Fail(fmt::format("output_length {} does not match the {} output_token_ids",
                                 *row.output_length, row.output_token_ids.size));
  }
  return true;
}

bool MooncakeReader::FindDelay(const MooncakeRow& row, JsonRows& rows, std::uint32_t session,
                               double& delay_ms) {
  const std::optional<double> before_ms = sessions_.LastTimestamp(session);
  if (table_.sessions[session].turns == 0) {
    if (row.delay_ms && *row.delay_ms != 0.0) {
      return rows.Fail(
          fmt::format("delay {} on the first turn of session {}; only later turns wait",
                      *row.delay_ms, table_.SessionName(session)));
    }
    return true;
  }
  if (row.delay_ms) {
    delay_ms = *row.delay_ms;
  } else if (row.timestamp_ms) {
    if (!before_ms) {
      return rows.Fail(
          fmt::format("session {} has no earlier timestamp, so the delay of this turn is unknown",
                      table_.SessionName(session)));
    }
    delay_ms = *row.timestamp_ms - *before_ms;
  }
  if (!(std::isfinite(delay_ms) && delay_ms >= 0.0)) {
    return rows.Fail(fmt::format(
        "delay {} of session {} is invalid; it must be finite and at least 0, and timestamps of a "
        "session must not go back",
        delay_ms, table_.SessionName(session)));
  }
  return true;
}

bool MooncakeReader::AddPrompt(const MooncakeRow& row, JsonRows& rows, TraceRow& out) {
  const std::uint64_t block_size = table_.trace_block_size;
  const std::uint64_t needed =
      out.input_tokens / block_size + (out.input_tokens % block_size == 0 ? 0 : 1);
  if (row.hash_ids.size > needed) {
    oddities_.surplus_ids.Note(rows.Line());
  }
  const std::span<const std::uint64_t> ids = row.hash_ids.Values();
  numbers_.resize(needed);
  if (!id_numbers_.Number(ids.first(needed), numbers_)) {
    return rows.Fail("hash_ids of the trace hold more than 4294967294 distinct ids");
  }
  if (table_.cumulative) {
    table_.block_ids.insert(table_.block_ids.end(), numbers_.begin(), numbers_.end());
    table_.block_ids_end.push_back(table_.block_ids.size());
    return true;
  }
  out.node = table_.block_names.AppendRuns({}, numbers_, block_size, out.input_tokens).node;
  return true;
}

void MooncakeReader::AddExtras(const MooncakeRow& row, TraceRow& out) {
  if (!row.priority && !row.strict_priority && !row.policy_class && !row.output_token_ids.present) {
    return;
  }
  RowExtras extras{.priority = row.priority.value_or(0),
                   .strict_priority = static_cast<std::uint32_t>(row.strict_priority.value_or(0))};
  if (row.policy_class) {
    const auto [index, is_new] = policy_classes_.TryInsert(
        std::string(*row.policy_class), static_cast<std::uint32_t>(table_.policy_classes.size()));
    if (is_new) {
      table_.policy_classes.emplace_back(*row.policy_class);
    }
    extras.policy_class = *index;
  }
  if (row.output_token_ids.present) {
    extras.explicit_output = true;
    table_.explicit_outputs = true;
    extras.output_tokens_begin = table_.output_token_ids.size();
    numbers_.clear();
    for (const std::uint64_t token : row.output_token_ids.Values()) {
      numbers_.push_back(static_cast<std::uint32_t>(token));
    }
    table_.output_token_ids.insert(table_.output_token_ids.end(), numbers_.begin(), numbers_.end());
    if (!table_.cumulative) {
      extras.whole_node =
          table_.block_names
              .AppendRuns({out.node, out.input_tokens}, numbers_, 1, out.output_tokens)
              .node;
    }
  }
  out.extras = static_cast<std::uint32_t>(table_.extras.size());
  table_.extras.push_back(extras);
}

bool MooncakeReader::Add(const MooncakeRow& row, JsonRows& rows) {
  if (table_.rows.size() == kMaxRequests) {
    return rows.Fail(fmt::format("the trace has more than {} rows", kMaxRequests));
  }
  TraceRow out;
  if (!CheckLengths(row, rows, out.input_tokens)) {
    return false;
  }
  out.output_tokens = *row.output_length;
  const std::uint32_t session = sessions_.Find(table_, row.session_id, rows.Line());
  if (!FindDelay(row, rows, session, out.delay_ms) || !AddPrompt(row, rows, out)) {
    return false;
  }
  AddExtras(row, out);
  if (out.delay_ms > kLongGapMs) {
    oddities_.long_gap.Note(rows.Line());
  }
  sessions_.Append(table_, session, out, row.timestamp_ms);
  return true;
}

Result<TraceContents> Read(const TraceSpec& spec, bool delta) {
  DYNO_TRY(const std::uint64_t block_size, TraceBlockSize(spec));
  const std::string& path = spec.files.front();
  DYNO_TRY(const TextFile file, TextFile::Read(path));
  JsonRows rows(path, file.Text());
  MooncakeReader reader(block_size, delta, file.Text().size());
  MooncakeRow row;
  while (ReadRow(rows, row) && reader.Add(row, rows)) {
  }
  if (rows.Failed()) {
    return std::unexpected(rows.Problem());
  }
  return TraceContents{.path = path, .table = reader.TakeTable(), .oddities = reader.Oddities()};
}

}  // namespace

Result<TraceContents> ReadMooncake(const WorkloadSpec& /*workload*/, const TraceSpec& spec) {
  return Read(spec, false);
}

Result<TraceContents> ReadMooncakeDelta(const WorkloadSpec& /*workload*/, const TraceSpec& spec) {
  return Read(spec, true);
}

}  // namespace dynosim::workload
