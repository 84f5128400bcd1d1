// SPDX-License-Identifier: Apache-2.0
#include "workload/agentic_graph.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "base/time.h"

namespace dynosim::workload {

std::string_view TriggerName(AgenticTrigger trigger) {
  return trigger == AgenticTrigger::kDispatch ? "dispatch" : "completion";
}

std::string_view RelationName(AgenticRelation relation) {
  switch (relation) {
    case AgenticRelation::kSequence:
      return "sequence";
    case AgenticRelation::kSpawn:
      return "spawn";
    case AgenticRelation::kJoin:
      return "join";
    case AgenticRelation::kReplayBarrier:
      return "replay_barrier";
  }
  return "";
}

std::span<const AgenticEdge> AgenticGraph::EdgesInto(std::uint32_t node) const {
  const std::uint64_t begin = nodes[node].edges_begin;
  const std::uint64_t end = node + 1 < nodes.size() ? nodes[node + 1].edges_begin : edges.size();
  return std::span(edges).subspan(begin, end - begin);
}

void NormalizeTimes(AgenticGraph& graph, double speedup) {
  double least = std::numeric_limits<double>::infinity();
  for (const AgenticNode& node : graph.nodes) {
    least = std::min(least, node.not_before_ms);
  }
  for (AgenticNode& node : graph.nodes) {
    node.not_before_ms = WithinTime((node.not_before_ms - least) / speedup);
  }
  for (AgenticEdge& edge : graph.edges) {
    edge.delay_ms = WithinTime(edge.delay_ms / speedup);
  }
}

}  // namespace dynosim::workload
