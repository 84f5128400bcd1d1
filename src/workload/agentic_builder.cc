// SPDX-License-Identifier: Apache-2.0
#include "workload/agentic_builder.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/flat_map.h"
#include "base/result.h"
#include "workload/agentic_graph.h"
#include "workload/blank.h"
#include "workload/block_names.h"
#include "workload/limits.h"
#include "workload/request.h"

namespace dynosim::workload {
namespace {

bool IsTime(double value) { return std::isfinite(value) && value >= 0.0; }

Result<void> CheckNames(const AgenticRequest& request) {
  const std::pair<const char*, const std::string*> names[] = {{"request_id", &request.request_id},
                                                              {"play_id", &request.play_id},
                                                              {"session_id", &request.session_id}};
  for (const auto& [member, text] : names) {
    if (IsBlank(*text)) {
      return FailedError(request.where, fmt::format("{} is empty", member));
    }
  }
  return {};
}

Result<void> CheckTimes(const AgenticRequest& request) {
  if (!IsTime(request.not_before_ms)) {
    return FailedError(
        request.where,
        fmt::format("not_before_ms must be finite and at least 0, got {}", request.not_before_ms));
  }
  if (request.recorded_api_time_ms && !IsTime(*request.recorded_api_time_ms)) {
    return FailedError(request.where,
                       fmt::format("recorded_api_time_ms must be finite and at least 0, got {}",
                                   *request.recorded_api_time_ms));
  }
  return {};
}

Result<void> CheckDependencies(const AgenticRequest& request) {
  for (const AgenticDependency& dependency : request.dependencies) {
    if (IsBlank(dependency.request_id)) {
      return FailedError(request.where, "a dependency has an empty request_id");
    }
    if (!IsTime(dependency.delay_ms)) {
      return FailedError(
          request.where,
          fmt::format("request '{}' depends on '{}' with the invalid delay {} ms; a dependency "
                      "delay must be finite and at least 0",
                      request.request_id, dependency.request_id, dependency.delay_ms));
    }
    if (dependency.trigger == AgenticTrigger::kDispatch &&
        dependency.relation != AgenticRelation::kSpawn) {
      return FailedError(request.where,
                         fmt::format("a {} dependency cannot have the trigger dispatch; only spawn "
                                     "can",
                                     RelationName(dependency.relation)));
    }
  }
  return {};
}

// Nodes that no order of execution reaches, in id order.
std::vector<std::uint32_t> Unreachable(const AgenticGraph& graph) {
  const auto count = static_cast<std::uint32_t>(graph.nodes.size());
  std::vector<std::uint32_t> waiting(count, 0);
  std::vector<std::uint64_t> out_begin(count + std::size_t{1}, 0);
  for (std::uint32_t n = 0; n < count; ++n) {
    for (const AgenticEdge& edge : graph.EdgesInto(n)) {
      ++waiting[n];
      ++out_begin[edge.source + std::size_t{1}];
    }
  }
  std::partial_sum(out_begin.begin(), out_begin.end(), out_begin.begin());
  std::vector<std::uint32_t> targets(graph.edges.size());
  std::vector<std::uint64_t> next = out_begin;
  std::vector<std::uint32_t> ready;
  for (std::uint32_t n = 0; n < count; ++n) {
    for (const AgenticEdge& edge : graph.EdgesInto(n)) {
      targets[next[edge.source]++] = n;
    }
    if (waiting[n] == 0) {
      ready.push_back(n);
    }
  }
  while (!ready.empty()) {
    const std::uint32_t source = ready.back();
    ready.pop_back();
    for (std::uint64_t i = out_begin[source]; i < out_begin[source + std::size_t{1}]; ++i) {
      if (--waiting[targets[i]] == 0) {
        ready.push_back(targets[i]);
      }
    }
  }
  std::vector<std::uint32_t> blocked;
  for (std::uint32_t n = 0; n < count; ++n) {
    if (waiting[n] > 0) {
      blocked.push_back(n);
    }
  }
  return blocked;
}

Result<void> CheckCycles(const std::string& path, const AgenticGraph& graph) {
  const std::vector<std::uint32_t> blocked = Unreachable(graph);
  if (blocked.empty()) {
    return {};
  }
  constexpr std::size_t kShown = 8;
  std::string ids;
  for (std::size_t i = 0; i < std::min(kShown, blocked.size()); ++i) {
    ids += fmt::format("{}'{}'", i == 0 ? "" : ", ", graph.nodes[blocked[i]].id);
  }
  return FailedError(
      path, fmt::format("the dependencies of {} requests form a cycle: {}{}", blocked.size(), ids,
                        blocked.size() > kShown ? ", ..." : ""));
}

// Numbers texts from 0 in the order they are first seen.
class TextNumbers {
 public:
  explicit TextNumbers(std::vector<std::string>& texts) : texts_(texts) {}
  std::uint32_t Number(const std::string& text) {
    const auto [number, is_new] =
        numbers_.TryInsert(text, static_cast<std::uint32_t>(texts_.size()));
    if (is_new) {
      texts_.push_back(text);
    }
    return *number;
  }

 private:
  std::vector<std::string>& texts_;
  FlatMap<std::string, std::uint32_t> numbers_;
};

}  // namespace

Result<void> AgenticBuilder::CheckLengths(const AgenticRequest& request) const {
  const auto fail = [&](std::string message) -> Result<void> {
    return FailedError(request.where, std::move(message));
  };
  if (!request.hash_ids) {
    return fail("hash_ids is missing");
  }
  if (request.hash_ids->empty()) {
    return fail("hash_ids is empty");
  }
  if (!request.input_tokens) {
    return fail("input_length is missing");
  }
  const std::uint64_t input = *request.input_tokens;
  if (input == 0 || input > kMaxTokens) {
    return fail(fmt::format("input_length must be from 1 to {}, got {}", kMaxTokens, input));
  }
  const std::uint64_t needed = (input - 1) / block_size_ + 1;
  if (!request.open_last_id && request.hash_ids->size() != needed) {
    return fail(fmt::format("input_length {} needs exactly {} hash_ids of block_size {}, got {}",
                            input, needed, block_size_, request.hash_ids->size()));
  }
  if (IsBlank(request.model)) {
    return fail("model is empty");
  }
  if (!request.output_tokens) {
    return fail("output_length is missing");
  }
  if (*request.output_tokens > kMaxTokens) {
    return fail(fmt::format("output_length must be at most {}, got {}", kMaxTokens,
                            *request.output_tokens));
  }
  if (request.output_token_ids && request.output_token_ids->size() != *request.output_tokens) {
    return fail(fmt::format("output_length {} does not match the {} output_token_ids",
                            *request.output_tokens, request.output_token_ids->size()));
  }
  return {};
}

Result<void> AgenticBuilder::Add(AgenticRequest request) {
  DYNO_TRY_VOID(CheckNames(request));
  if (requests_.size() == kMaxRequests) {
    return FailedError(request.where, fmt::format("more than {} requests", kMaxRequests));
  }
  if (!by_id_.TryInsert(request.request_id, static_cast<std::uint32_t>(requests_.size())).second) {
    return FailedError(request.where,
                       fmt::format("request_id '{}' is given twice", request.request_id));
  }
  DYNO_TRY_VOID(CheckLengths(request));
  DYNO_TRY_VOID(CheckTimes(request));
  DYNO_TRY_VOID(CheckDependencies(request));
  requests_.push_back(std::move(request));
  return {};
}

// Requests in byte order of their ids: their places are the nodes.
void AgenticBuilder::Sort() {
  std::sort(
      requests_.begin(), requests_.end(),
      [](const AgenticRequest& a, const AgenticRequest& b) { return a.request_id < b.request_id; });
  for (std::uint32_t i = 0; i < requests_.size(); ++i) {
    *by_id_.Find(requests_[i].request_id) = i;
  }
}

Result<void> AgenticBuilder::AddPrompt(AgenticRequest& request, AgenticGraph& graph,
                                       AgenticNode& node) {
  std::vector<std::uint32_t> numbers;
  numbers.reserve(request.hash_ids->size());
  for (const std::uint64_t id : *request.hash_ids) {
    numbers.push_back(id_numbers_.Number(id));
    if (numbers.back() == kNone) {
      return FailedError(request.where, "the trace holds more than 4294967294 distinct hash_ids");
    }
  }
  request.hash_ids.reset();
  BlockNames::Sequence prompt =
      graph.block_names.AppendRuns({}, numbers, block_size_, node.input_tokens);
  if (request.open_last_id) {
    prompt = graph.block_names.Append(prompt, numbers.back(), node.input_tokens - prompt.tokens);
  }
  node.prompt_node = prompt.node;
  if (request.output_token_ids) {
    const std::vector<std::uint32_t>& ids = *request.output_token_ids;
    node.explicit_output = true;
    node.output_tokens_begin = graph.output_token_ids.size();
    graph.explicit_outputs = true;
    graph.output_token_ids.insert(graph.output_token_ids.end(), ids.begin(), ids.end());
    node.whole_node = graph.block_names.AppendRuns(prompt, ids, 1, ids.size()).node;
  }
  return {};
}

Result<void> AgenticBuilder::AddNodes(const std::string& path, AgenticGraph& graph) {
  for (const AgenticRequest& request : requests_) {
    graph.models.push_back(request.model);
  }
  std::sort(graph.models.begin(), graph.models.end());
  graph.models.erase(std::unique(graph.models.begin(), graph.models.end()), graph.models.end());
  std::vector<std::string> play_ids;
  TextNumbers plays(play_ids);
  TextNumbers sessions(graph.sessions);
  TextNumbers policy_classes(graph.policy_classes);
  graph.nodes.reserve(requests_.size());
  for (AgenticRequest& request : requests_) {
    AgenticNode node{.id = request.request_id,
                     .play = plays.Number(request.play_id),
                     .session = sessions.Number(request.session_id),
                     .input_tokens = *request.input_tokens,
                     .output_tokens = *request.output_tokens,
                     .not_before_ms = request.not_before_ms,
                     .recorded_api_time_ms = request.recorded_api_time_ms,
                     .priority = request.priority,
                     .strict_priority = request.strict_priority};
    node.model = static_cast<std::uint32_t>(
        std::lower_bound(graph.models.begin(), graph.models.end(), request.model) -
        graph.models.begin());
    if (request.policy_class) {
      node.policy_class = policy_classes.Number(*request.policy_class);
    }
    DYNO_TRY_VOID(AddPrompt(request, graph, node));
    if (node.play == graph.plays.size()) {
      graph.plays.push_back({.id = request.play_id});
      play_ordinals_.push_back(request.play_ordinal);
    }
    AgenticPlay& play = graph.plays[node.play];
    if (play_ordinals_[node.play] != request.play_ordinal) {
      return FailedError(
          path, fmt::format("play '{}' has different source_play_ordinal values", request.play_id));
    }
    play.nodes.push_back(static_cast<std::uint32_t>(graph.nodes.size()));
    graph.nodes.push_back(std::move(node));
  }
  return {};
}

Result<void> AgenticBuilder::AddEdges(AgenticGraph& graph) {
  for (std::uint32_t n = 0; n < requests_.size(); ++n) {
    AgenticNode& node = graph.nodes[n];
    node.edges_begin = graph.edges.size();
    for (const AgenticDependency& dependency : requests_[n].dependencies) {
      const auto fail = [&](std::string_view problem) -> Result<void> {
        return FailedError(requests_[n].where, fmt::format("request '{}' {}", node.id, problem));
      };
      const std::uint32_t* const source = by_id_.Find(dependency.request_id);
      if (source == nullptr) {
        return fail(fmt::format("depends on the unknown request_id '{}'", dependency.request_id));
      }
      if (*source == n) {
        return fail("depends on itself");
      }
      if (graph.nodes[*source].play != node.play) {
        return fail(fmt::format("of play '{}' depends on request '{}' of play '{}'",
                                requests_[n].play_id, dependency.request_id,
                                requests_[*source].play_id));
      }
      graph.edges.push_back({.source = *source,
                             .trigger = dependency.trigger,
                             .relation = dependency.relation,
                             .delay_ms = dependency.delay_ms});
    }
  }
  return {};
}

Result<void> AgenticBuilder::OrderPlays(const std::string& path, AgenticGraph& graph) const {
  const auto given = static_cast<std::size_t>(std::count_if(
      play_ordinals_.begin(), play_ordinals_.end(),
      [](const std::optional<std::uint64_t>& ordinal) { return ordinal.has_value(); }));
  if (given != 0 && given != graph.plays.size()) {
    return FailedError(path, "source_play_ordinal must be given for every play, or for none");
  }
  std::vector<std::uint32_t> order(graph.plays.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (play_ordinals_[a] != play_ordinals_[b]) {
      return play_ordinals_[a] < play_ordinals_[b];
    }
    return graph.plays[a].id < graph.plays[b].id;
  });
  for (std::uint32_t i = 0; given != 0 && i < order.size(); ++i) {
    if (play_ordinals_[order[i]] != i) {
      return FailedError(path, fmt::format("source_play_ordinal values must be unique and without "
                                           "gaps from 0; expected {}, found {}",
                                           i, play_ordinals_[order[i]].value_or(0)));
    }
  }
  std::vector<AgenticPlay> plays;
  plays.reserve(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    plays.push_back(std::move(graph.plays[order[i]]));
    plays.back().has_ordinal = given != 0;
    for (const std::uint32_t node : plays.back().nodes) {
      graph.nodes[node].play = i;
    }
  }
  graph.plays = std::move(plays);
  return {};
}

Result<AgenticGraph> AgenticBuilder::Finish(const std::string& path) {
  if (requests_.empty()) {
    return FailedError(path, "the trace contains no requests");
  }
  Sort();
  AgenticGraph graph;
  graph.block_size = block_size_;
  DYNO_TRY_VOID(AddNodes(path, graph));
  DYNO_TRY_VOID(AddEdges(graph));
  DYNO_TRY_VOID(CheckCycles(path, graph));
  DYNO_TRY_VOID(OrderPlays(path, graph));
  return graph;
}

}  // namespace dynosim::workload
