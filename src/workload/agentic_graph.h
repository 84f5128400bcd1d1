// SPDX-License-Identifier: Apache-2.0
// AgenticGraph: requests that depend on each other. Nodes are requests in the byte order of their
// ids, and a node's index is its request id in a run. Nodes belong to plays, each the work of one
// agent; edges never leave a play. A finished graph has no cycles.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workload/block_names.h"
#include "workload/request.h"

namespace dynosim::workload {

// What an edge waits for.
enum class AgenticTrigger : std::uint8_t { kDispatch, kCompletion };
// Why there is an edge; only reports look at it.
enum class AgenticRelation : std::uint8_t { kSequence, kSpawn, kJoin, kReplayBarrier };

std::string_view TriggerName(AgenticTrigger trigger);
std::string_view RelationName(AgenticRelation relation);

// An incoming edge: the node waits for `source`, and then for `delay_ms`.
struct AgenticEdge {
  std::uint32_t source = kNone;
  AgenticTrigger trigger = AgenticTrigger::kCompletion;
  AgenticRelation relation = AgenticRelation::kSequence;
  double delay_ms = 0.0;
};

struct AgenticNode {
  std::string id;
  std::uint32_t play = 0;
  std::uint32_t session = 0;
  std::uint32_t model = 0;
  std::uint64_t input_tokens = 0;
  std::uint64_t output_tokens = 0;
  double not_before_ms = 0.0;
  std::optional<double> recorded_api_time_ms{};
  std::uint32_t prompt_node = kNone;  // last run of the prompt
  std::uint32_t whole_node = kNone;   // last run of prompt and given output
  bool explicit_output = false;
  std::uint64_t output_tokens_begin = 0;  // in output_token_ids
  std::uint64_t edges_begin = 0;          // incoming edges, in edges
  std::int32_t priority = 0;
  std::uint32_t strict_priority = 0;
  std::uint32_t policy_class = kNone;
};

struct AgenticPlay {
  std::string id;
  std::vector<std::uint32_t> nodes{};  // ascending
  bool has_ordinal = false;
};

struct AgenticGraph {
  std::string source_format;
  std::string source_digest;
  std::uint64_t block_size = 0;
  std::string nested_timestamp_basis;  // weka only, else empty

  std::vector<AgenticNode> nodes;
  std::vector<AgenticEdge> edges;  // by target, as authored
  std::vector<AgenticPlay> plays;  // in the order in which lanes take them
  std::vector<std::string> sessions;
  std::vector<std::string> models;  // sorted
  std::vector<std::string> policy_classes;
  std::vector<std::uint32_t> output_token_ids;
  BlockNames block_names;
  bool explicit_outputs = false;

  std::span<const AgenticEdge> EdgesInto(std::uint32_t node) const;
};

// Moves the earliest not_before_ms to 0 and divides all times by the speedup.
void NormalizeTimes(AgenticGraph& graph, double speedup);

}  // namespace dynosim::workload
