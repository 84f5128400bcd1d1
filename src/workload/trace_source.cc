// SPDX-License-Identifier: Apache-2.0
#include "workload/trace_source.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "workload/block_names.h"
#include "workload/request.h"
#include "workload/session_queue.h"
#include "workload/trace_table.h"

namespace dynosim::workload {
namespace {

SessionQueue MakeQueue(const TraceTable& table, std::optional<std::uint64_t> cap) {
  if (cap) {
    return SessionQueue::Capped(static_cast<std::uint32_t>(table.sessions.size()), *cap);
  }
  std::vector<double> first_ready_ms;
  first_ready_ms.reserve(table.sessions.size());
  for (const TraceSession& session : table.sessions) {
    first_ready_ms.push_back(session.first_ms);
  }
  return SessionQueue::OpenLoop(std::move(first_ready_ms));
}

}  // namespace

TraceSource::TraceSource(TraceTable table, std::optional<std::uint64_t> cap)
    : table_(std::move(table)),
      queue_(MakeQueue(table_, cap)),
      shows_sessions_(cap.has_value() || !table_.single_turns),
      unreleased_(table_.rows.size()) {
  current_row_.reserve(table_.sessions.size());
  for (const TraceSession& session : table_.sessions) {
    current_row_.push_back(session.first_row);
  }
  if (table_.cumulative) {
    prompts_.resize(table_.rows.size());
    table_.block_names = BlockNames(RequestCount(), table_.distinct_ids);
  }
}

bool TraceSource::Release(double now_ms, Request& out) {
  const std::optional<SessionQueue::Turn> next = queue_.Pop(now_ms);
  if (!next) {
    return false;
  }
  --unreleased_;
  const std::uint32_t id = current_row_[next->session];
  const TraceRow& row = table_.rows[id];
  out = Request{.id = id,
                .arrival_ms = next->ready_ms,
                .prompt_tokens = row.input_tokens,
                .output_tokens = row.output_tokens};
  if (shows_sessions_) {
    out.session = row.session;
    out.turn = row.turn;
  }
  if (const RowExtras* extras = Extras(row)) {
    out.priority = extras->priority;
    out.strict_priority = extras->strict_priority;
    out.policy_class = extras->policy_class;
  }
  if (table_.cumulative) {
    BuildPrompt(id);
    out.prompt_tokens = prompts_[id].input.tokens;
  }
  return true;
}

void TraceSource::OnTerminal(std::uint32_t id, double now_ms, TerminalStatus status,
                             std::uint64_t emitted_tokens) {
  const TraceRow& row = table_.rows[id];
  const bool goes_on = status == TerminalStatus::kCompleted || status == TerminalStatus::kRejected;
  if (!goes_on) {
    unreleased_ -= table_.sessions[row.session].turns - (row.turn + 1);
  }
  if (!goes_on || row.next_row == kNone) {
    queue_.EndSession(now_ms);
    return;
  }
  if (table_.cumulative) {
    const std::uint64_t kept = status == TerminalStatus::kCompleted ? emitted_tokens : 0;
    prompts_[row.next_row].input = AppendOutput(prompts_[id].input, id, kept);
  }
  current_row_[row.session] = row.next_row;
  queue_.Push({.ready_ms = WithinTime(now_ms + table_.rows[row.next_row].delay_ms),
               .session = row.session,
               .turn = row.turn + 1});
}

BlockNames::Sequence TraceSource::AppendOutput(BlockNames::Sequence prompt, std::uint32_t id,
                                               std::uint64_t tokens) {
  const TraceRow& row = table_.rows[id];
  if (!HasExplicitOutput(row)) {
    return table_.block_names.AppendPrivate(prompt, id, tokens);
  }
  const std::span<const std::uint32_t> given(table_.output_token_ids);
  return table_.block_names.AppendRuns(
      prompt, given.subspan(Extras(row)->output_tokens_begin, row.output_tokens), 1, tokens);
}

void TraceSource::BuildPrompt(std::uint32_t id) {
  const TraceRow& row = table_.rows[id];
  const std::uint64_t begin = id == 0 ? 0 : table_.block_ids_end[id - 1];
  const std::span<const std::uint32_t> ids(table_.block_ids);
  Prompt& prompt = prompts_[id];
  prompt.input = table_.block_names.AppendRuns(prompt.input,
                                               ids.subspan(begin, table_.block_ids_end[id] - begin),
                                               table_.trace_block_size, row.input_tokens);
  if (HasExplicitOutput(row)) {
    prompt.whole = AppendOutput(prompt.input, id, row.output_tokens);
  }
}

BlockNames::Sequence TraceSource::PromptOf(std::uint32_t id) const {
  const TraceRow& row = table_.rows[id];
  return table_.cumulative ? prompts_[id].input : BlockNames::Sequence{row.node, row.input_tokens};
}

void TraceSource::Blocks(std::uint32_t id, std::uint64_t block_size,
                         std::vector<BlockExtent>& out) const {
  out.clear();
  const TraceRow& row = table_.rows[id];
  const BlockNames& names = table_.block_names;
  if (HasExplicitOutput(row)) {
    names.Extents(table_.cumulative ? prompts_[id].whole
                                    : BlockNames::Sequence{Extras(row)->whole_node,
                                                           row.input_tokens + row.output_tokens},
                  block_size, out);
    return;
  }
  const BlockNames::Sequence prompt = PromptOf(id);
  names.Extents(prompt, block_size, out);
  if (!table_.cumulative) {
    out.push_back({names.size() + id, 0, kEndless});
    return;
  }
  // Only a later turn of the session can contain what this one generates.
  if (row.next_row == kNone) {
    out.push_back({id, 0, kEndless});
    return;
  }
  const std::uint64_t generated =
      (prompt.tokens + row.output_tokens) / block_size - prompt.tokens / block_size;
  if (generated > 0) {
    out.push_back(
        {id, 0, static_cast<std::uint32_t>(std::min<std::uint64_t>(generated, kEndless - 1))});
  }
}

void TraceSource::PromptTokens(std::uint32_t id, std::vector<std::uint32_t>& out) const {
  out.clear();
  table_.block_names.Tokens(PromptOf(id), out);
}

std::uint32_t TraceSource::OutputToken(std::uint32_t id, std::uint64_t ordinal) const {
  const TraceRow& row = table_.rows[id];
  if (HasExplicitOutput(row)) {
    return table_.output_token_ids[Extras(row)->output_tokens_begin + ordinal];
  }
  return GeneratedToken(std::uint64_t{id} + 1, ordinal);
}

}  // namespace dynosim::workload
