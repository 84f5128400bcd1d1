// SPDX-License-Identifier: Apache-2.0
// FadingNames: block names of prompts that come one after the other without end. It names blocks as
// BlockNames does, with 64-bit block ids for values, and forgets a prefix that neither a cache nor
// a request holds: if the prefix comes again it gets another name, and nobody can tell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "base/flat_map.h"
#include "workload/block_names.h"
#include "workload/request.h"

namespace dynosim::workload {

class FadingNames {
 public:
  // Prefixes that are kept before it is worth asking which ones are held.
  explicit FadingNames(std::size_t least) : least_(least), ask_at_(least) {}

  // The sequence of runs of `run_length` tokens, one per id, until `tokens` tokens.
  BlockNames::Sequence Prompt(std::span<const std::uint64_t> ids, std::uint64_t run_length,
                              std::uint64_t tokens);
  // Appends the names of all complete blocks, in order.
  void Extents(BlockNames::Sequence sequence, std::uint64_t block_size,
               std::vector<BlockExtent>& out) const;
  // Appends the id of every run, with the number of tokens before it, last run first.
  template <class Visit>
  void ForEachRun(BlockNames::Sequence sequence, const Visit& visit) const {
    for (std::uint32_t node = sequence.node; node != kNone; node = nodes_[node].parent) {
      visit(nodes_[node].id, nodes_[node].start);
    }
  }

  // Prefixes in memory.
  std::size_t size() const { return nodes_.size() - unused_.size(); }
  // So many have come that it is time to forget.
  bool WantsHeld() const { return size() >= ask_at_; }
  // Between BeginForget and EndForget every group that is still held is kept; others are forgotten.
  void BeginForget() { kept_.assign(nodes_.size(), false); }
  void Keep(std::uint32_t group);
  void EndForget();

 private:
  struct Node {
    std::uint64_t start = 0;  // tokens before the run
    std::uint64_t id = 0;
    std::uint32_t parent = kNone;
    bool used = false;
  };
  using Key = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;  // parent, id, start

  std::uint32_t NewNode(const Node& node);

  std::vector<Node> nodes_;
  std::vector<std::uint32_t> unused_;
  FlatMap<Key, std::uint32_t> children_;
  std::vector<bool> kept_;
  std::size_t least_;
  std::size_t ask_at_;
};

}  // namespace dynosim::workload
