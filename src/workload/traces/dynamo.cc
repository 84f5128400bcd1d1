// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/dynamo.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/flat_map.h"
#include "base/result.h"
#include "base/text_file.h"
#include "workload/limits.h"
#include "workload/spec.h"
#include "workload/trace_table.h"
#include "workload/traces/contents.h"
#include "workload/traces/dynamo_graph.h"
#include "workload/traces/dynamo_records.h"
#include "workload/traces/list_builder.h"

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
      return FailedError(request.where,
                         fmt::format("request_id \"{}\" is given twice", request.id));
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
      return FailedError(request.where,
                         "request.replay.trace_block_size must be greater than 0 "
                         "(embedded trace block size)");
    }
    if (request.block_size != block_size) {
      return FailedError(request.where,
                         fmt::format("trace_block_size {} differs from {} of an earlier request",
                                     request.block_size, block_size));
    }
  }
  if (spec.block_size &&
      (*spec.block_size < 1 || static_cast<std::uint64_t>(*spec.block_size) != block_size)) {
    return UsageError("--trace-block-size",
                      fmt::format("is {}, but the trace_block_size of the trace is {}",
                                  *spec.block_size, block_size));
  }
  return block_size;
}

// A list: each request is a session of its own, called after its place in order of time.
Result<TraceTable> MakeTable(const DynamoRecords& records, std::uint64_t block_size) {
  ListBuilder list(block_size);
  const std::uint64_t first_ms = records.requests.front().start_ms;
  for (std::uint32_t r = 0; r < records.requests.size(); ++r) {
    const DynamoRequest& request = records.requests[r];
    const std::optional<std::string> problem =
        list.Add({.line = r + 1,
                  .timestamp_ms = static_cast<double>(request.start_ms - first_ms),
                  .input_tokens = request.input_tokens,
                  .output_tokens = *request.output_tokens},
                 request.hash_ids);
    if (problem) {
      return FailedError(request.where,
                         fmt::format("{} (line {} in order of time)", *problem, r + 1));
    }
  }
  return list.Take();
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
