// SPDX-License-Identifier: Apache-2.0
// AgenticSource: replays an AgenticGraph. A node is ready when everything it depends on was
// dispatched or has completed, and its delays have passed. Plays start at their authored times, or
// on a number of lanes: a lane plays one play after the other. A request that does not complete
// fails its play: what has not started yet is skipped, what is in flight ends.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workload/agentic_graph.h"
#include "workload/block_names.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::workload {

class AgenticSource final : public RequestSource {
 public:
  // What happened to a play.
  struct PlayState {
    std::uint32_t lane = kNone;
    std::uint32_t unreleased = 0;
    std::uint32_t in_flight = 0;
    std::optional<double> first_dispatch_ms{};
    double last_terminal_ms = 0.0;
    std::optional<double> causal_terminal_ms{};  // the last end, up to that of a failed request
    std::optional<double> settled_ms{};          // nothing in flight any more
    std::uint32_t failure = kNone;               // the first request that did not complete
    TerminalStatus failure_status = TerminalStatus::kCompleted;
    bool Completed() const { return settled_ms && failure == kNone; }
  };

  // Times of `graph` are normalized. Without lanes every play starts at its authored time.
  AgenticSource(AgenticGraph graph, std::optional<std::uint64_t> lanes);

  std::optional<double> NextReadyMs() const override;
  bool Exhausted() const override { return unreleased_ == 0; }
  bool Release(double now_ms, Request& out) override;
  void OnTerminal(std::uint32_t id, double now_ms, TerminalStatus status,
                  std::uint64_t emitted_tokens) override;
  void Blocks(std::uint32_t id, std::uint64_t block_size,
              std::vector<BlockExtent>& out) const override;
  std::uint32_t RequestCount() const override {
    return static_cast<std::uint32_t>(graph_.nodes.size());
  }
  bool SharesGeneratedBlocks() const override { return graph_.explicit_outputs; }
  std::string SessionName(std::uint32_t session) const override { return graph_.sessions[session]; }
  std::string_view PolicyClassName(std::uint32_t policy_class) const override {
    return graph_.policy_classes[policy_class];
  }
  void PromptTokens(std::uint32_t id, std::vector<std::uint32_t>& out) const override;
  std::uint32_t OutputToken(std::uint32_t id, std::uint64_t ordinal) const override;
  const AgenticSource* Agentic() const override { return this; }

  const AgenticGraph& graph() const { return graph_; }
  const PlayState& play(std::uint32_t play) const { return plays_[play]; }
  // Dispatches, ends of requests (two each), skipped requests and ends of plays, so far.
  std::uint64_t lifecycle_events() const { return lifecycle_events_; }
  // The play's only node without dependencies; kNone when there are several.
  std::uint32_t OnlyRoot(std::uint32_t play) const { return only_root_[play]; }
  // The first node that spawned this one; kNone when none did.
  std::uint32_t Parent(std::uint32_t node) const;

 private:
  struct OutEdge {
    std::uint32_t target = 0;
    AgenticTrigger trigger = AgenticTrigger::kCompletion;
    double delay_ms = 0.0;
  };
  struct Ready {
    double at_ms = 0.0;
    std::uint32_t node = 0;
    friend constexpr auto operator<=>(const Ready&, const Ready&) = default;
  };

  void ConnectEdges();
  void StartPlay(std::uint32_t play, double now_ms);
  void StartOnLane(std::uint32_t lane, double now_ms);
  void Fire(std::uint32_t source, AgenticTrigger trigger, double now_ms);
  void Push(std::uint32_t node);
  void FailPlay(std::uint32_t id, double now_ms, TerminalStatus status);
  void DropSkipped();

  AgenticGraph graph_;
  std::vector<OutEdge> out_edges_;        // by source
  std::vector<std::uint64_t> out_begin_;  // by node, and the end
  std::vector<std::uint32_t> waits_for_;  // by node: edges that have not fired
  std::vector<double> ready_after_ms_;    // by node
  std::vector<PlayState> plays_;
  std::vector<std::uint32_t> only_root_;
  std::vector<Ready> ready_;  // heap, least first; its front belongs to a play that goes on
  bool uses_lanes_;
  std::uint32_t next_play_ = 0;  // of the lanes
  std::uint64_t unreleased_;
  std::uint64_t lifecycle_events_ = 0;
};

}  // namespace dynosim::workload
