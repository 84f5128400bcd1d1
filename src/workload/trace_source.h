// SPDX-License-Identifier: Apache-2.0
// TraceSource: replays a TraceTable, as a list of requests or as sessions. Request ids are row
// numbers of the file. Cumulative prompts are built when a turn is released, from the outputs that
// were really generated before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workload/block_names.h"
#include "workload/request.h"
#include "workload/session_queue.h"
#include "workload/source.h"
#include "workload/trace_table.h"

namespace dynosim::workload {

class TraceSource final : public RequestSource {
 public:
  // `table` is finished. With a cap, at most so many sessions are active.
  TraceSource(TraceTable table, std::optional<std::uint64_t> cap);

  std::optional<double> NextReadyMs() const override { return queue_.NextReadyMs(); }
  bool Exhausted() const override { return unreleased_ == 0; }
  bool Release(double now_ms, Request& out) override;
  void OnTerminal(std::uint32_t id, double now_ms, TerminalStatus status,
                  std::uint64_t emitted_tokens) override;
  void Blocks(std::uint32_t id, std::uint64_t block_size,
              std::vector<BlockExtent>& out) const override;
  std::uint32_t RequestCount() const override {
    return static_cast<std::uint32_t>(table_.rows.size());
  }
  bool SharesGeneratedBlocks() const override {
    return table_.explicit_outputs || (table_.cumulative && !table_.single_turns);
  }
  std::string SessionName(std::uint32_t session) const override {
    return table_.SessionName(session);
  }
  std::string_view PolicyClassName(std::uint32_t policy_class) const override {
    return table_.policy_classes[policy_class];
  }
  void PromptTokens(std::uint32_t id, std::vector<std::uint32_t>& out) const override;
  std::uint32_t OutputToken(std::uint32_t id, std::uint64_t ordinal) const override;

 private:
  // Cumulative prompts, by row: the prompt once the row is released, and it with its given output.
  struct Prompt {
    BlockNames::Sequence input;
    BlockNames::Sequence whole;
  };

  const RowExtras* Extras(const TraceRow& row) const {
    return row.extras == kNone ? nullptr : &table_.extras[row.extras];
  }
  bool HasExplicitOutput(const TraceRow& row) const {
    return row.extras != kNone && table_.extras[row.extras].explicit_output;
  }
  BlockNames::Sequence AppendOutput(BlockNames::Sequence prompt, std::uint32_t id,
                                    std::uint64_t tokens);
  void BuildPrompt(std::uint32_t id);
  BlockNames::Sequence PromptOf(std::uint32_t id) const;

  TraceTable table_;
  SessionQueue queue_;
  bool shows_sessions_;
  std::uint64_t unreleased_;
  std::vector<std::uint32_t> current_row_;  // by session: the turn in flight or waiting
  std::vector<Prompt> prompts_;
};

}  // namespace dynosim::workload
