// SPDX-License-Identifier: Apache-2.0
// SyntheticSessions: sessions of equally many turns of equal lengths. A prompt begins with the
// blocks shared by the session's group, if it has one; all other blocks are fresh. With cumulative
// prompts a later turn contains the previous prompt and what was really generated, then its new
// input. Request ids are session-major: session * turns + turn.
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

namespace dynosim::workload {

struct SyntheticSessionsSettings {
  std::uint32_t sessions = 0;
  std::uint32_t turns = 1;
  std::uint64_t input_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t block_size = 1;
  std::uint64_t shared_blocks = 0;  // blocks at the start of a prompt that a group shares
  std::uint32_t groups = 0;         // 0: no session has a group
  double turn_delay_ms = 0.0;
  bool cumulative = false;
};

class SyntheticSessions final : public RequestSource {
 public:
  SyntheticSessions(const SyntheticSessionsSettings& settings, SessionQueue queue);

  std::optional<double> NextReadyMs() const override { return queue_.NextReadyMs(); }
  bool Exhausted() const override { return unreleased_ == 0; }
  bool Release(double now_ms, Request& out) override;
  void OnTerminal(std::uint32_t id, double now_ms, TerminalStatus status,
                  std::uint64_t emitted_tokens) override;
  void Blocks(std::uint32_t id, std::uint64_t block_size,
              std::vector<BlockExtent>& out) const override;
  std::uint32_t RequestCount() const override { return settings_.sessions * settings_.turns; }
  bool SharesGeneratedBlocks() const override { return settings_.cumulative; }
  std::string SessionName(std::uint32_t session) const override;
  std::string_view PolicyClassName(std::uint32_t policy_class) const override;
  void PromptTokens(std::uint32_t id, std::vector<std::uint32_t>& out) const override;
  std::uint32_t OutputToken(std::uint32_t id, std::uint64_t ordinal) const override;

 private:
  void DrawGroups();
  // Tokens at the start of a first prompt that the group shares.
  std::uint64_t SharedTokens() const;
  std::uint32_t FreshToken(std::uint32_t id, std::uint64_t block) const;

  SyntheticSessionsSettings settings_;
  SessionQueue queue_;
  std::uint64_t unreleased_;
  std::vector<std::uint32_t> group_of_session_;  // dense numbers; empty without groups
  std::uint32_t group_count_ = 0;
  // Cumulative prompts: the sequence of every released request, and the tree it lives in.
  std::vector<BlockNames::Sequence> prompts_;
  BlockNames names_;
};

}  // namespace dynosim::workload
