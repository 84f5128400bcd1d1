// SPDX-License-Identifier: Apache-2.0
// What reports say about agentic graphs beyond single requests: the graph, the outcome of every
// play, and the latency of plays from their first dispatch to their last end.
#pragma once

#include <cstdint>

#include "base/json.h"
#include "report/json_writer.h"
#include "report/quantiles.h"
#include "scenario/scenario.h"
#include "workload/agentic_source.h"

namespace dynosim::report {

struct AgenticSummary {
  std::uint64_t total_trajectories = 0;
  std::uint64_t completed_trajectories = 0;
  Distribution trajectory_e2e_latency_ms;  // completed plays
  // Members of the summary that are objects, lists or names: the graph, play outcomes, models.
  Json details;
};

AgenticSummary SummarizeAgentic(const workload::AgenticSource& source,
                                const scenario::Scenario& scenario);

// The member `agentic` of a row.
void WriteAgenticRow(JsonWriter& out, const workload::AgenticSource& source, std::uint32_t node);

}  // namespace dynosim::report
