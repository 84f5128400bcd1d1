// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/list_builder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include <fmt/format.h>

#include "base/numeric.h"
#include "workload/block_names.h"
#include "workload/limits.h"
#include "workload/request.h"
#include "workload/trace_table.h"

namespace dynosim::workload {
namespace {

constexpr const char* kTooManyIds = "the trace holds more than 4294967294 distinct hash_ids";

}  // namespace

std::optional<std::string> ListBuilder::CheckLengths(const ListRow& row) const {
  if (table_.rows.size() == kMaxRequests) {
    return fmt::format("the trace has more than {} rows", kMaxRequests);
  }
  if (row.input_tokens > kMaxTokens || row.output_tokens > kMaxTokens) {
    return fmt::format("lengths must be at most {}, got {} and {}", kMaxTokens, row.input_tokens,
                       row.output_tokens);
  }
  return std::nullopt;
}

void ListBuilder::Append(const ListRow& row, std::uint32_t node) {
  const std::uint32_t session = sessions_.Find(table_, std::nullopt, row.line);
  sessions_.Append(
      table_, session,
      {.input_tokens = row.input_tokens, .output_tokens = row.output_tokens, .node = node},
      row.timestamp_ms);
}

std::optional<std::string> ListBuilder::Add(const ListRow& row,
                                            std::span<const std::uint64_t> ids) {
  const std::uint64_t block_size = table_.trace_block_size;
  const std::uint64_t capacity = SaturatingMultiply(ids.size(), block_size);
  if (row.input_tokens > capacity) {
    return fmt::format(
        "input_length {} exceeds the capacity {} of its hash_ids ({} ids of {} tokens)",
        row.input_tokens, capacity, ids.size(), block_size);
  }
  if (std::optional<std::string> problem = CheckLengths(row)) {
    return problem;
  }
  const std::uint64_t needed =
      row.input_tokens / block_size + (row.input_tokens % block_size == 0 ? 0 : 1);
  if (ids.size() > needed) {
    oddities_.surplus_ids.Note(row.line);
  }
  numbers_.resize(needed);
  for (std::size_t i = 0; i < needed; ++i) {
    numbers_[i] = id_numbers_.Number(ids[i]);
    if (numbers_[i] == kNone) {
      return kTooManyIds;
    }
  }
  Append(row, table_.block_names.AppendRuns({}, numbers_, block_size, row.input_tokens).node);
  return std::nullopt;
}

std::optional<std::string> ListBuilder::AddUnique(const ListRow& row) {
  if (std::optional<std::string> problem = CheckLengths(row)) {
    return problem;
  }
  const std::uint32_t number = id_numbers_.Number(table_.rows.size());
  Append(row, table_.block_names.Append({}, number, row.input_tokens).node);
  return std::nullopt;
}

void ListBuilder::StartAtZero() {
  double least = std::numeric_limits<double>::infinity();
  for (const TraceSession& session : table_.sessions) {
    least = std::min(least, session.first_ms);
  }
  for (TraceSession& session : table_.sessions) {
    session.first_ms -= least;
  }
}

}  // namespace dynosim::workload
