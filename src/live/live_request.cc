// SPDX-License-Identifier: Apache-2.0
#include "live/live_request.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "workload/request.h"

namespace dynosim::live {

std::uint32_t OutputPlan::Token(std::uint64_t ordinal) const {
  ordinal += first_ordinal;
  if (ordinal < reasoning_tokens) {
    if (ordinal == 0) {
      return reasoning_start;
    }
    if (ordinal + 1 == reasoning_tokens) {
      return reasoning_end;
    }
  }
  if (kind == Kind::kFixed && !ids.empty()) {
    return ids[ordinal % ids.size()];
  }
  const std::array<std::uint64_t, 2> key = {seed, ordinal};
  const std::uint64_t draw = Xxh3(std::as_bytes(std::span(key)), 0);
  return ids.empty() ? kFirstOutputToken + static_cast<std::uint32_t>(draw % kOutputTokens)
                     : ids[draw % ids.size()];
}

void LiveRequest::NameBlocks(std::uint64_t block_size, std::uint64_t tokens_max) {
  const std::uint64_t planned = prompt.size() + std::min(output_tokens, tokens_max);
  const std::uint64_t count = std::min(planned, tokens_max) / block_size;
  blocks.clear();
  blocks.reserve(count);
  std::vector<std::uint32_t> tokens(block_size);
  for (std::uint64_t block = 0; block < count; ++block) {
    for (std::uint64_t i = 0; i < block_size; ++i) {
      tokens[i] = TokenAt(block * block_size + i);
    }
    const std::uint64_t local = LocalBlockHash(tokens);
    const bool first = block == 0;
    blocks.push_back(first && salt == 0 ? local
                                        : SequenceHash(first ? salt : blocks.back(), local));
  }
}

workload::Request RequestTable::Add(std::shared_ptr<const LiveRequest> request, double now_ms) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
    DYNO_CHECK(slots_.size() <= (1U << kSlotBits));
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  Slot& slot = slots_[place];
  slot.id = slot.id == workload::kNone ? place : slot.id + (1U << kSlotBits);
  slot.request = std::move(request);
  ++count_;
  return {.id = slot.id,
          .arrival_ms = now_ms,
          .prompt_tokens = slot.request->prompt.size(),
          .output_tokens = slot.request->output_tokens,
          .priority = slot.request->priority};
}

const LiveRequest* RequestTable::Find(std::uint32_t id) const {
  const std::uint32_t place = id & ((1U << kSlotBits) - 1);
  return place < slots_.size() && slots_[place].id == id ? slots_[place].request.get() : nullptr;
}

void RequestTable::Remove(std::uint32_t id) {
  if (Find(id) == nullptr) {
    return;
  }
  const std::uint32_t place = id & ((1U << kSlotBits) - 1);
  slots_[place].request.reset();
  free_.push_back(place);
  --count_;
}

// All workers of a server have the block size that the request was named for.
void RequestTable::Blocks(std::uint32_t id, std::uint64_t /*block_size*/,
                          std::vector<workload::BlockExtent>& out) const {
  out.clear();
  const LiveRequest& request = *Find(id);
  out.reserve(request.blocks.size() + 1);
  for (const std::uint64_t name : request.blocks) {
    out.push_back({.group = static_cast<std::uint32_t>(name >> 32U),
                   .first = static_cast<std::uint32_t>(name),
                   .count = 1});
  }
  // Beyond what can ever be filled.
  out.push_back({.group = workload::kNone, .first = 0, .count = workload::kEndless});
}

void RequestTable::PromptTokens(std::uint32_t id, std::vector<std::uint32_t>& out) const {
  out = Find(id)->prompt;
}

std::uint32_t RequestTable::OutputToken(std::uint32_t id, std::uint64_t ordinal) const {
  return Find(id)->output.Token(ordinal);
}

}  // namespace dynosim::live
