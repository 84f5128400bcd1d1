// SPDX-License-Identifier: Apache-2.0
#include "workload/fading_names.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "workload/block_names.h"
#include "workload/extents.h"
#include "workload/request.h"

namespace dynosim::workload {

std::uint32_t FadingNames::NewNode(const Node& node) {
  if (unused_.empty()) {
    nodes_.push_back(node);
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }
  const std::uint32_t number = unused_.back();
  unused_.pop_back();
  nodes_[number] = node;
  return number;
}

BlockNames::Sequence FadingNames::Prompt(std::span<const std::uint64_t> ids,
                                         std::uint64_t run_length, std::uint64_t tokens) {
  BlockNames::Sequence sequence;
  for (const std::uint64_t id : ids) {
    const std::uint64_t run = std::min(run_length, tokens - sequence.tokens);
    if (run == 0) {
      break;
    }
    // Equal neighbours are one run.
    if (sequence.node == kNone || nodes_[sequence.node].id != id) {
      const Node node{.start = sequence.tokens, .id = id, .parent = sequence.node, .used = true};
      const auto [number, is_new] = children_.TryInsert(Key{node.parent, node.id, node.start});
      if (is_new) {
        *number = NewNode(node);
      }
      sequence.node = *number;
    }
    sequence.tokens += run;
  }
  return sequence;
}

void FadingNames::Extents(BlockNames::Sequence sequence, std::uint64_t block_size,
                          std::vector<BlockExtent>& out) const {
  AppendExtents(nodes_, sequence.node, sequence.tokens, block_size, out);
}

void FadingNames::Keep(std::uint32_t group) {
  // Groups beyond the prefixes are generated blocks.
  while (group < kept_.size() && !kept_[group]) {
    kept_[group] = true;
    group = nodes_[group].parent;
  }
}

void FadingNames::EndForget() {
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    Node& node = nodes_[n];
    if (node.used && !kept_[n]) {
      children_.Erase(Key{node.parent, node.id, node.start});
      node.used = false;
      unused_.push_back(n);
    }
  }
  ask_at_ = std::max(least_, 2 * size());
}

}  // namespace dynosim::workload
