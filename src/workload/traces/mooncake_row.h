// SPDX-License-Identifier: Apache-2.0
// One line of a Mooncake trace: its members by name, alias and type.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "workload/traces/json_rows.h"
#include "workload/traces/unsigned_list.h"

namespace dynosim::workload {

// One line as written. Absent members and null are the same.
struct MooncakeRow {
  std::uint32_t fields_seen = 0;  // bit per Field
  std::optional<double> timestamp_ms;
  std::optional<double> delay_ms;
  std::optional<std::uint64_t> input_length;
  std::optional<std::uint64_t> output_length;
  std::optional<std::string_view> session_id;
  std::optional<std::string_view> request_id;
  std::optional<std::string_view> policy_class;
  std::optional<std::int32_t> priority;
  std::optional<std::uint64_t> strict_priority;
  UnsignedList hash_ids;
  UnsignedList output_token_ids;

  void Clear() {
    UnsignedList ids = std::move(hash_ids);
    UnsignedList tokens = std::move(output_token_ids);
    *this = MooncakeRow{};
    hash_ids = std::move(ids);
    output_token_ids = std::move(tokens);
    hash_ids.Clear();
    output_token_ids.Clear();
  }
};

// Reads the next row; false at the end and after a problem, which `rows` keeps.
bool ReadRow(JsonRows& rows, MooncakeRow& row);

}  // namespace dynosim::workload
