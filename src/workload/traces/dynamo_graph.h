// SPDX-License-Identifier: Apache-2.0
// Turns Dynamo records with agent contexts into a graph of dependent requests.
#pragma once

#include <string>

#include "base/result.h"
#include "workload/agentic_graph.h"
#include "workload/traces/dynamo_records.h"

namespace dynosim::workload {

// `records.requests` are in order of (start, end, id) and all have a session.
Result<AgenticGraph> MakeDynamoGraph(const std::string& path, std::uint64_t block_size,
                                     DynamoRecords records);

}  // namespace dynosim::workload
