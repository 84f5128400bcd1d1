// SPDX-License-Identifier: Apache-2.0
// The records of Dynamo request traces, as far as a replay needs them: finished requests, and tool
// calls that started or joined other sessions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace dynosim::workload {

struct DynamoRequest {
  std::string where;  // file and line
  std::string id{};
  std::optional<std::string> model{};
  std::optional<std::uint64_t> output_tokens{};
  std::uint64_t start_ms = 0;
  std::uint64_t end_ms = 0;
  std::uint64_t block_size = 0;
  std::uint64_t input_tokens = 0;
  std::vector<std::uint64_t> hash_ids{};
  std::optional<std::string> session{};  // of its agent
  std::optional<std::string> parent_session{};
};

struct DynamoTool {
  std::string where;
  std::string id, tool_class;
  std::string source_request;
  std::optional<std::string> consumer_request{};
  std::optional<std::string> child_session{};
};

struct DynamoRecords {
  std::vector<DynamoRequest> requests;
  std::vector<DynamoTool> tools;  // those that name a source request
  std::uint64_t tool_records = 0;
};

// Appends the records of one file.
Result<void> ReadDynamoRecords(const std::string& path, std::string_view text,
                               DynamoRecords& records);

}  // namespace dynosim::workload
