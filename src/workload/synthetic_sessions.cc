// SPDX-License-Identifier: Apache-2.0
#include "workload/synthetic_sessions.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/flat_map.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/time.h"
#include "workload/block_names.h"
#include "workload/request.h"
#include "workload/session_queue.h"

namespace dynosim::workload {
namespace {

constexpr std::uint64_t kFixedGroupSeed = 42;
constexpr std::uint64_t kCumulativeGroupSeed = 0;

}  // namespace

SyntheticSessions::SyntheticSessions(const SyntheticSessionsSettings& settings, SessionQueue queue)
    : settings_(settings),
      queue_(std::move(queue)),
      unreleased_(std::uint64_t{settings.sessions} * settings.turns) {
  if (settings_.groups > 0) {
    DrawGroups();
  }
  if (settings_.cumulative) {
    names_ = BlockNames(RequestCount(), group_count_ + std::size_t{RequestCount()});
    prompts_.resize(RequestCount());
  }
}

void SyntheticSessions::DrawGroups() {
  ChaCha12 random(settings_.cumulative ? kCumulativeGroupSeed : kFixedGroupSeed);
  FlatMap<std::uint32_t, std::uint32_t> numbers;
  group_of_session_.resize(settings_.sessions);
  for (std::uint32_t& group : group_of_session_) {
    const auto [number, is_new] =
        numbers.TryInsert(random.NextBelow(settings_.groups), group_count_);
    group_count_ += is_new ? 1 : 0;
    group = *number;
  }
}

std::uint64_t SyntheticSessions::SharedTokens() const {
  return group_of_session_.empty()
             ? 0
             : std::min(settings_.shared_blocks * settings_.block_size, settings_.input_tokens);
}

bool SyntheticSessions::Release(double now_ms, Request& out) {
  const std::optional<SessionQueue::Turn> next = queue_.Pop(now_ms);
  if (!next) {
    return false;
  }
  const std::uint32_t id = next->session * settings_.turns + next->turn;
  out = Request{.id = id,
                .arrival_ms = next->ready_ms,
                .prompt_tokens = settings_.input_tokens,
                .output_tokens = settings_.output_tokens,
                .session = next->session,
                .turn = next->turn};
  --unreleased_;
  if (settings_.cumulative) {
    // The sequence so far is the one that OnTerminal left here; then the new input.
    BlockNames::Sequence& prompt = prompts_[id];
    const std::uint64_t shared = next->turn == 0 ? SharedTokens() : 0;
    if (shared > 0) {
      prompt = names_.Append(prompt, group_of_session_[next->session], shared);
    }
    prompt = names_.Append(prompt, group_count_ + id, settings_.input_tokens - shared);
    out.prompt_tokens = prompt.tokens;
  }
  return true;
}

void SyntheticSessions::OnTerminal(std::uint32_t id, double now_ms, TerminalStatus status,
                                   std::uint64_t emitted_tokens) {
  const std::uint32_t session = id / settings_.turns;
  const std::uint32_t turn = id % settings_.turns + 1;
  const bool goes_on = status == TerminalStatus::kCompleted || status == TerminalStatus::kRejected;
  if (!goes_on) {
    unreleased_ -= settings_.turns - turn;
  }
  if (!goes_on || turn == settings_.turns) {
    queue_.EndSession(now_ms);
    return;
  }
  if (settings_.cumulative) {
    const std::uint64_t kept = status == TerminalStatus::kCompleted ? emitted_tokens : 0;
    prompts_[id + 1] = names_.AppendPrivate(prompts_[id], id, kept);
  }
  queue_.Push(
      {.ready_ms = WithinTime(now_ms + settings_.turn_delay_ms), .session = session, .turn = turn});
}

void SyntheticSessions::Blocks(std::uint32_t id, std::uint64_t block_size,
                               std::vector<BlockExtent>& out) const {
  out.clear();
  if (!settings_.cumulative) {
    const std::uint64_t shared = std::min<std::uint64_t>(SharedTokens() / block_size, kEndless - 1);
    if (shared > 0) {
      out.push_back(
          {group_of_session_[id / settings_.turns], 0, static_cast<std::uint32_t>(shared)});
    }
    out.push_back({group_count_ + id, 0, kEndless});
    return;
  }
  const BlockNames::Sequence& prompt = prompts_[id];
  names_.Extents(prompt, block_size, out);
  // Only a later turn of the session can contain what this one generates.
  const bool last = id % settings_.turns + 1 == settings_.turns;
  const std::uint64_t end = (prompt.tokens + settings_.output_tokens) / block_size;
  const std::uint64_t generated = end - prompt.tokens / block_size;
  if (last || generated > 0) {
    out.push_back(
        {id, 0,
         last ? kEndless
              : static_cast<std::uint32_t>(std::min<std::uint64_t>(generated, kEndless - 1))});
  }
}

std::string SyntheticSessions::SessionName(std::uint32_t session) const {
  return fmt::format("session_{}", session);
}
std::string_view SyntheticSessions::PolicyClassName(std::uint32_t /*policy_class*/) const {
  return {};
}

std::uint32_t SyntheticSessions::FreshToken(std::uint32_t id, std::uint64_t block) const {
  const std::uint64_t blocks =
      (settings_.input_tokens + settings_.block_size - 1) / settings_.block_size;
  const std::uint64_t shared = group_of_session_.empty() ? 0 : settings_.shared_blocks;
  // Numbers of blocks, shared ones first; they wrap only when there are more than 2^32 of them.
  return static_cast<std::uint32_t>(group_count_ * shared + id * (blocks - shared) +
                                    (block - shared));
}

void SyntheticSessions::PromptTokens(std::uint32_t id, std::vector<std::uint32_t>& out) const {
  out.clear();
  if (settings_.cumulative) {
    names_.Tokens(prompts_[id], out);
    return;
  }
  out.resize(settings_.input_tokens);
  const std::uint64_t shared = SharedTokens();
  for (std::uint64_t i = 0; i < out.size(); ++i) {
    const std::uint64_t block = i / settings_.block_size;
    out[i] = i < shared
                 ? static_cast<std::uint32_t>(
                       group_of_session_[id / settings_.turns] * settings_.shared_blocks + block)
                 : FreshToken(id, block);
  }
}

std::uint32_t SyntheticSessions::OutputToken(std::uint32_t id, std::uint64_t ordinal) const {
  return GeneratedToken(std::uint64_t{id} + 1, ordinal);
}

}  // namespace dynosim::workload
