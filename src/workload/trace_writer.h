// SPDX-License-Identifier: Apache-2.0
// Writes what a trace says as Mooncake lines: tables as mooncake or mooncake-delta, graphs as
// agentic Mooncake. Reading the lines again gives the same requests.
#pragma once

#include <functional>
#include <string_view>

#include "workload/traces/contents.h"

namespace dynosim::workload {

struct WriteOptions {
  bool by_time = false;      // sessions in order of their first times, the earliest at 0
  double time_factor = 1.0;  // of all times
};

using LineSink = std::function<void(std::string_view)>;

// Name of the format that the lines have.
std::string_view WrittenFormat(const TraceContents& contents);

// Tokens of one hash id of the lines.
std::uint64_t WrittenBlockSize(const TraceContents& contents);

// Each call of the sink gets one line with its line feed.
void WriteTrace(const TraceContents& contents, const WriteOptions& options, const LineSink& sink);

}  // namespace dynosim::workload
