// SPDX-License-Identifier: Apache-2.0
// AgenticBuilder: makes an AgenticGraph from requests in any order that name each other by id.
// Every rule about one request and about the whole graph is checked here, for all formats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/flat_map.h"
#include "base/result.h"
#include "workload/agentic_graph.h"

namespace dynosim::workload {

struct AgenticDependency {
  std::string request_id;
  AgenticTrigger trigger = AgenticTrigger::kCompletion;
  AgenticRelation relation = AgenticRelation::kSequence;
  double delay_ms = 0.0;
};

// One request as a trace gives it; absent values are absent in the trace.
struct AgenticRequest {
  std::string where;  // of messages about it
  std::string request_id{}, play_id{}, session_id{}, model{};
  std::optional<std::uint64_t> input_tokens{}, output_tokens{};
  std::optional<std::vector<std::uint64_t>> hash_ids{};
  // The last id stands for all that follows the blocks before it, not for one block.
  bool open_last_id = false;
  std::optional<std::vector<std::uint32_t>> output_token_ids{};
  double not_before_ms = 0.0;
  std::optional<double> recorded_api_time_ms{};
  std::optional<std::uint64_t> play_ordinal{};
  std::int32_t priority = 0;
  std::uint32_t strict_priority = 0;
  std::optional<std::string> policy_class{};
  std::vector<AgenticDependency> dependencies{};
};

class AgenticBuilder {
 public:
  explicit AgenticBuilder(std::uint64_t block_size) : block_size_(block_size) {}

  // Checks the request's own rules and takes it.
  Result<void> Add(AgenticRequest request);

  // Checks the whole graph and makes it; `path` is for messages.
  Result<AgenticGraph> Finish(const std::string& path);

 private:
  Result<void> CheckLengths(const AgenticRequest& request) const;
  void Sort();
  Result<void> AddNodes(const std::string& path, AgenticGraph& graph);
  Result<void> AddEdges(AgenticGraph& graph);
  Result<void> AddPrompt(AgenticRequest& request, AgenticGraph& graph, AgenticNode& node);
  Result<void> OrderPlays(const std::string& path, AgenticGraph& graph) const;

  std::uint64_t block_size_;
  std::vector<AgenticRequest> requests_;
  FlatMap<std::string, std::uint32_t> by_id_;  // index in requests_; after Sort() also the node
  IdNumbers id_numbers_;
  std::vector<std::optional<std::uint64_t>> play_ordinals_;  // by play, of its first node
};

}  // namespace dynosim::workload
