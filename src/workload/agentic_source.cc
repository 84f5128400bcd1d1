// SPDX-License-Identifier: Apache-2.0
#include "workload/agentic_source.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "workload/agentic_graph.h"
#include "workload/block_names.h"
#include "workload/request.h"

namespace dynosim::workload {

AgenticSource::AgenticSource(AgenticGraph graph, std::optional<std::uint64_t> lanes)
    : graph_(std::move(graph)),
      plays_(graph_.plays.size()),
      only_root_(graph_.plays.size(), kNone),
      uses_lanes_(lanes.has_value()),
      unreleased_(graph_.nodes.size()) {
  ConnectEdges();
  ready_after_ms_.reserve(graph_.nodes.size());
  for (const AgenticNode& node : graph_.nodes) {
    ready_after_ms_.push_back(node.not_before_ms);
  }
  const auto plays = static_cast<std::uint32_t>(plays_.size());
  for (std::uint32_t p = 0; p < plays; ++p) {
    plays_[p].unreleased = static_cast<std::uint32_t>(graph_.plays[p].nodes.size());
    std::uint32_t roots = 0;
    for (const std::uint32_t node : graph_.plays[p].nodes) {
      if (waits_for_[node] == 0) {
        only_root_[p] = ++roots == 1 ? node : kNone;
      }
    }
  }
  if (lanes) {
    for (std::uint32_t lane = 0; lane < std::min<std::uint64_t>(*lanes, plays); ++lane) {
      StartOnLane(lane, 0.0);
    }
  } else {
    for (std::uint32_t p = 0; p < plays; ++p) {
      StartPlay(p, 0.0);
    }
  }
}

void AgenticSource::ConnectEdges() {
  const auto count = static_cast<std::uint32_t>(graph_.nodes.size());
  waits_for_.assign(count, 0);
  out_begin_.assign(count + std::size_t{1}, 0);
  out_edges_.resize(graph_.edges.size());
  for (std::uint32_t n = 0; n < count; ++n) {
    for (const AgenticEdge& edge : graph_.EdgesInto(n)) {
      ++waits_for_[n];
      ++out_begin_[edge.source + std::size_t{1}];
    }
  }
  std::partial_sum(out_begin_.begin(), out_begin_.end(), out_begin_.begin());
  std::vector<std::uint64_t> next = out_begin_;
  for (std::uint32_t n = 0; n < count; ++n) {
    for (const AgenticEdge& edge : graph_.EdgesInto(n)) {
      out_edges_[next[edge.source]++] = {
          .target = n, .trigger = edge.trigger, .delay_ms = edge.delay_ms};
    }
  }
}

void AgenticSource::StartPlay(std::uint32_t play, double now_ms) {
  const std::vector<std::uint32_t>& nodes = graph_.plays[play].nodes;
  if (uses_lanes_) {
    double first_ms = std::numeric_limits<double>::infinity();
    for (const std::uint32_t node : nodes) {
      if (waits_for_[node] == 0) {
        first_ms = std::min(first_ms, graph_.nodes[node].not_before_ms);
      }
    }
    for (const std::uint32_t node : nodes) {
      ready_after_ms_[node] = now_ms + std::max(0.0, graph_.nodes[node].not_before_ms - first_ms);
    }
  }
  for (const std::uint32_t node : nodes) {
    if (waits_for_[node] == 0) {
      Push(node);
    }
  }
}

// The next play in order, if there is one.
void AgenticSource::StartOnLane(std::uint32_t lane, double now_ms) {
  if (next_play_ < plays_.size()) {
    const std::uint32_t play = next_play_++;
    plays_[play].lane = lane;
    StartPlay(play, now_ms);
  }
}

void AgenticSource::Push(std::uint32_t node) {
  ready_.push_back({.at_ms = ready_after_ms_[node], .node = node});
  std::push_heap(ready_.begin(), ready_.end(), std::greater<>());
}

// Removes nodes of failed plays from the front.
void AgenticSource::DropSkipped() {
  while (!ready_.empty() && plays_[graph_.nodes[ready_.front().node].play].failure != kNone) {
    std::pop_heap(ready_.begin(), ready_.end(), std::greater<>());
    ready_.pop_back();
  }
}

std::optional<double> AgenticSource::NextReadyMs() const {
  return ready_.empty() ? std::nullopt : std::optional(ready_.front().at_ms);
}

void AgenticSource::Fire(std::uint32_t source, AgenticTrigger trigger, double now_ms) {
  for (std::uint64_t i = out_begin_[source]; i < out_begin_[source + std::size_t{1}]; ++i) {
    const OutEdge& edge = out_edges_[i];
    if (edge.trigger != trigger) {
      continue;
    }
    double& ready_ms = ready_after_ms_[edge.target];
    ready_ms = std::max(ready_ms, WithinTime(now_ms + edge.delay_ms));
    if (--waits_for_[edge.target] == 0) {
      Push(edge.target);
    }
  }
}

bool AgenticSource::Release(double now_ms, Request& out) {
  if (ready_.empty() || ready_.front().at_ms > now_ms) {
    return false;
  }
  const Ready ready = ready_.front();
  std::pop_heap(ready_.begin(), ready_.end(), std::greater<>());
  ready_.pop_back();
  const AgenticNode& node = graph_.nodes[ready.node];
  PlayState& play = plays_[node.play];
  --unreleased_;
  --play.unreleased;
  ++play.in_flight;
  ++lifecycle_events_;
  play.first_dispatch_ms = std::min(play.first_dispatch_ms.value_or(now_ms), now_ms);
  out = Request{.id = ready.node,
                .arrival_ms = ready.at_ms,
                .prompt_tokens = node.input_tokens,
                .output_tokens = node.output_tokens,
                .session = node.session,
                .priority = node.priority,
                .strict_priority = node.strict_priority,
                .policy_class = node.policy_class};
  Fire(ready.node, AgenticTrigger::kDispatch, now_ms);
  DropSkipped();
  return true;
}

void AgenticSource::FailPlay(std::uint32_t id, double now_ms, TerminalStatus status) {
  PlayState& play = plays_[graph_.nodes[id].play];
  if (play.failure != kNone) {
    // Of several failures at one time the first by request_id counts.
    if (now_ms == play.causal_terminal_ms && id < play.failure) {
      play.failure = id;
      play.failure_status = status;
    }
    return;
  }
  play.failure = id;
  play.failure_status = status;
  lifecycle_events_ += play.unreleased;
  unreleased_ -= play.unreleased;
  play.unreleased = 0;
}

void AgenticSource::OnTerminal(std::uint32_t id, double now_ms, TerminalStatus status,
                               std::uint64_t /*emitted_tokens*/) {
  PlayState& play = plays_[graph_.nodes[id].play];
  lifecycle_events_ += 2;
  --play.in_flight;
  play.last_terminal_ms = now_ms;
  if (play.failure == kNone) {
    play.causal_terminal_ms = now_ms;
  }
  if (status != TerminalStatus::kCompleted) {
    FailPlay(id, now_ms, status);
  } else if (play.failure == kNone) {
    Fire(id, AgenticTrigger::kCompletion, now_ms);
  }
  if (play.in_flight == 0 && play.unreleased == 0) {
    ++lifecycle_events_;
    play.settled_ms = now_ms;
    if (uses_lanes_) {
      StartOnLane(play.lane, now_ms);
    }
  }
  DropSkipped();
}

std::uint32_t AgenticSource::Parent(std::uint32_t node) const {
  std::uint32_t parent = kNone;
  for (const AgenticEdge& edge : graph_.EdgesInto(node)) {
    if (edge.relation == AgenticRelation::kSpawn) {
      parent = std::min(parent, edge.source);
    }
  }
  return parent;
}

void AgenticSource::Blocks(std::uint32_t id, std::uint64_t block_size,
                           std::vector<BlockExtent>& out) const {
  out.clear();
  const AgenticNode& node = graph_.nodes[id];
  const BlockNames& names = graph_.block_names;
  if (node.explicit_output) {
    names.Extents({node.whole_node, node.input_tokens + node.output_tokens}, block_size, out);
    return;
  }
  names.Extents({node.prompt_node, node.input_tokens}, block_size, out);
  out.push_back({names.size() + id, 0, kEndless});
}

void AgenticSource::PromptTokens(std::uint32_t id, std::vector<std::uint32_t>& out) const {
  out.clear();
  const AgenticNode& node = graph_.nodes[id];
  graph_.block_names.Tokens({node.prompt_node, node.input_tokens}, out);
}

std::uint32_t AgenticSource::OutputToken(std::uint32_t id, std::uint64_t ordinal) const {
  const AgenticNode& node = graph_.nodes[id];
  return node.explicit_output ? graph_.output_token_ids[node.output_tokens_begin + ordinal]
                              : GeneratedToken(std::uint64_t{id} + 1, ordinal);
}

}  // namespace dynosim::workload
