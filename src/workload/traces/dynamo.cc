// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/dynamo.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/flat_map.h"
#include "base/numeric.h"
#include "base/result.h"
#include "base/text_file.h"
#include "workload/block_names.h"
#include "workload/limits.h"
#include "workload/request.h"
#include "workload/spec.h"
#include "workload/trace_sessions.h"
#include "workload/trace_table.h"
#include "workload/traces/contents.h"
#include "workload/traces/dynamo_graph.h"
#include "workload/traces/dynamo_records.h"

namespace dynosim::workload {
namespace {

Result<void> CheckRequests(const std::string& path, const DynamoRecords& records) {
  if (records.requests.empty()) {
    return FailedError(path, "the trace contains no request_end records");
  }
  if (records.requests.size() > kMaxRequests) {
    return FailedError(path, fmt::format("the trace has more than {} requests", kMaxRequests));
  }
  FlatMap<std::string, std::uint32_t> seen;
  const bool agentic = records.requests.front().session.has_value();
  for (const DynamoRequest& request : records.requests) {
    if (!seen.TryInsert(request.id, 0U).second) {
      return FailedError(request.where, fmt::format("request_id \"{}\" is given twice", request.id));
    }
    if (request.session.has_value() != agentic) {
      return FailedError(request.where,
                         "either all requests or none have an agent_context, but this trace mixes "
                         "them");
    }
    if (!request.output_tokens) {
      return FailedError(request.where, "request.output_tokens is missing");
    }
  }
  return {};
}

Result<std::uint64_t> CheckBlockSize(const TraceSpec& spec, const DynamoRecords& records) {
  const std::uint64_t block_size = records.requests.front().block_size;
  for (const DynamoRequest& request : records.requests) {
    if (request.block_size == 0) {
      return FailedError(request.where, "request.replay.trace_block_size must be greater than 0 "
                                        "(embedded trace block size)");
    }
    if (request.block_size != block_size) {
      return FailedError(request.where,
                         fmt::format("trace_block_size {} differs from {} of an earlier request",
                                     request.block_size, block_size));
    }
  }
  if (spec.block_size && (*spec.block_size < 1 ||
                          static_cast<std::uint64_t>(*spec.block_size) != block_size)) {
    return UsageError("--trace-block-size",
                      fmt::format("is {}, but the trace_block_size of the trace is {}",
                                  *spec.block_size, block_size));
  }
  return block_size;
}

// A list: each request is a session of its own, called after its place in order of time.
Result<TraceTable> MakeTable(const DynamoRecords& records, std::uint64_t block_size) {
  TraceTable table;
  table.trace_block_size = block_size;
  TraceSessions sessions;
  IdNumbers id_numbers;
  const std::uint64_t first_ms = records.requests.front().start_ms;
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t r = 0; r < records.requests.size(); ++r) {
    const DynamoRequest& request = records.requests[r];
    const std::uint64_t capacity = SaturatingMultiply(request.hash_ids.size(), block_size);
    if (request.input_tokens > capacity || request.input_tokens > kMaxTokens) {
      return FailedError(
          request.where,
          fmt::format("input_length {} exceeds the capacity {} of its input_sequence_hashes "
                      "(hash_ids) (line {} in order of time)",
                      request.input_tokens, std::min(capacity, kMaxTokens), r + 1));
    }
    if (*request.output_tokens > kMaxTokens) {
      return FailedError(request.where, fmt::format("output_tokens must be at most {}, got {}",
                                                    kMaxTokens, *request.output_tokens));
    }
    numbers.clear();
    const std::uint64_t blocks =
        request.input_tokens / block_size + (request.input_tokens % block_size == 0 ? 0 : 1);
    for (const std::uint64_t id : std::span(request.hash_ids).first(blocks)) {
      numbers.push_back(id_numbers.Number(id));
      if (numbers.back() == kNone) {
        return FailedError(request.where, "the trace holds more than 4294967294 distinct hashes");
      }
    }
    const TraceRow row{
        .input_tokens = request.input_tokens,
        .output_tokens = *request.output_tokens,
        .node = table.block_names.AppendRuns({}, numbers, block_size, request.input_tokens).node};
    sessions.Append(table, sessions.Find(table, std::nullopt, r + 1), row,
                    static_cast<double>(request.start_ms - first_ms));
  }
  return table;
}

}  // namespace

Result<TraceContents> ReadDynamo(const WorkloadSpec& /*workload*/, const TraceSpec& spec) {
  DynamoRecords records;
  for (const std::string& path : spec.files) {
    DYNO_TRY(const TextFile file, TextFile::Read(path));
    DYNO_TRY_VOID(ReadDynamoRecords(path, file.Text(), records));
  }
  TraceContents contents{.path = spec.files.front()};
  DYNO_TRY_VOID(CheckRequests(contents.path, records));
  DYNO_TRY(const std::uint64_t block_size, CheckBlockSize(spec, records));
  std::sort(records.requests.begin(), records.requests.end(),
            [](const DynamoRequest& a, const DynamoRequest& b) {
              return std::tie(a.start_ms, a.end_ms, a.id) < std::tie(b.start_ms, b.end_ms, b.id);
            });
  if (records.requests.front().session) {
    DYNO_TRY(contents.graph, MakeDynamoGraph(contents.path, block_size, std::move(records)));
  } else {
    DYNO_TRY(contents.table, MakeTable(records, block_size));
  }
  return contents;
}

}  // namespace dynosim::workload
