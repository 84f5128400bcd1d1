// SPDX-License-Identifier: Apache-2.0
// BlockNames: interns token sequences, so that two KV blocks have the same name (group, offset) if
// and only if their whole token prefixes are equal.
//
// Tokens of trace prompts come in long runs of one value, so a sequence is kept as runs. The runs
// form a tree: a node is "a run of value v that begins after `start` tokens of this very prefix",
// its key is (parent node, length of the parent's run, v), and a sequence is its last node and its
// length. A block is named by the node that holds its last token, and by its position among the
// blocks ending in that node. Memory is 16 bytes per node, whatever the lengths.
//
// Generated tokens that no other request can produce are a private run, one per owner, whose node
// number is the owner's. Owners are declared up front.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "base/flat_map.h"
#include "workload/request.h"

namespace dynosim::workload {

class BlockNames {
 public:
  // An interned sequence of `tokens` tokens whose last run is `node`.
  struct Sequence {
    std::uint32_t node = kNone;
    std::uint64_t tokens = 0;
    friend bool operator==(const Sequence&, const Sequence&) = default;
  };

  // `values`: how many values to expect when they are numbers from 0 (it only saves time).
  explicit BlockNames(std::uint32_t private_owners = 0, std::size_t values = 0)
      : nodes_(private_owners), first_node_(values, kNone) {}

  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
  void Reserve(std::size_t nodes) { nodes_.reserve(nodes); }

  // The sequence followed by `count` times `value`.
  Sequence Append(Sequence sequence, std::uint32_t value, std::uint64_t count);

  // The sequence followed by runs of `run_length` tokens, one per value, until `count` tokens.
  Sequence AppendRuns(Sequence sequence, std::span<const std::uint32_t> values,
                      std::uint64_t run_length, std::uint64_t count);

  // The sequence followed by the first `count` generated tokens of `owner`. An owner has one place:
  // it always follows the same sequence.
  Sequence AppendPrivate(Sequence sequence, std::uint32_t owner, std::uint64_t count);

  // Appends the names of all complete blocks, in order. Groups are node numbers.
  void Extents(Sequence sequence, std::uint64_t block_size, std::vector<BlockExtent>& out) const;

  // Appends all token values; private tokens are those of GeneratedToken(owner + 1, ...).
  void Tokens(Sequence sequence, std::vector<std::uint32_t>& out) const;

 private:
  struct Node {
    std::uint64_t start = 0;  // tokens before the run
    std::uint32_t parent = kNone;
    std::uint32_t value = 0;
  };
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // parent, value, start

  bool IsPrivate(std::uint32_t node) const { return node < private_owners_; }
  // The last run of the sequence followed by `value`.
  std::uint32_t NextNode(Sequence sequence, std::uint32_t value);
  std::uint32_t OtherChild(Sequence sequence, std::uint32_t value);
  std::uint32_t NewNode(Sequence sequence, std::uint32_t value);

  std::vector<Node> nodes_;
  std::uint32_t private_owners_ = size();
  // By value: the first node that was made for it. Most values occur under one parent only, so the
  // map below stays small.
  std::vector<std::uint32_t> first_node_;
  FlatMap<Key, std::uint32_t> other_nodes_;
  // Set once a value beyond first_node_ is in the map; the array must not grow over it then.
  bool sparse_ = false;
};

// Numbers distinct 64-bit ids from 0 in the order they are first seen.
class IdNumbers {
 public:
  // kNone when there are more than 2^32 - 2 distinct ids.
  std::uint32_t Number(std::uint64_t id) {
    if (in_order_ && id <= count_ && count_ < kNone - 1) {
      count_ += id == count_ ? 1 : 0;
      return static_cast<std::uint32_t>(id);
    }
    return NumberOfOther(id);
  }
  // The numbers of many ids; false when one of them would be kNone.
  bool Number(std::span<const std::uint64_t> ids, std::span<std::uint32_t> out);
  std::uint32_t size() const { return count_; }

 private:
  std::uint32_t NumberOfOther(std::uint64_t id);

  bool in_order_ = true;              // so far every id is its own number
  std::vector<std::uint32_t> small_;  // by id, for ids not much larger than their count
  FlatMap<std::uint64_t, std::uint32_t> large_;
  std::uint32_t count_ = 0;
};

}  // namespace dynosim::workload
