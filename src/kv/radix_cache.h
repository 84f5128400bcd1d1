// SPDX-License-Identifier: Apache-2.0
// RadixCache: the token pool and the prefix tree of one rank (SGLang shape, chapter 20, section 3).
//
// All amounts are pages. A page is free, owned by a request outside the tree, or in the tree, where
// it is protected (its node is locked) or evictable. An edge holds runs of page names, so a walk
// costs a step per run, never per page. Names are unique to their whole prefix, hence one index by
// the first name of an edge finds any child. Pages have no identity: of two copies of a page the
// tree keeps one and the caller returns the other.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "base/flat_map.h"
#include "kv/events.h"
#include "kv/sequence_blocks.h"
#include "workload/request.h"

namespace dynosim::kv {

// When a node was last used. Stamps of different operations are different.
struct Stamp {
  std::uint64_t major = 0;
  std::uint64_t minor = 0;
  friend auto operator<=>(const Stamp&, const Stamp&) = default;
};

// Brings a leaf that grows by itself up to date, see RadixCache::SetGrowing.
class GrowingLeaves {
 public:
  GrowingLeaves() = default;
  GrowingLeaves(const GrowingLeaves&) = delete;
  GrowingLeaves& operator=(const GrowingLeaves&) = delete;
  virtual ~GrowingLeaves() = default;
  virtual void CatchUp(std::uint32_t owner) = 0;
};

class RadixCache {
 public:
  using NodeId = std::uint32_t;
  static constexpr NodeId kRoot = 0;

  explicit RadixCache(std::uint64_t pages);

  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t free() const { return free_; }
  std::uint64_t evictable() const { return evictable_; }
  std::uint64_t protected_pages() const { return protected_; }
  // What can be had for new pages.
  std::uint64_t available() const { return free_ + evictable_; }

  // Takes pages out of the pool, evicting where needed. Not more than available().
  void Take(std::uint64_t pages);
  void Return(std::uint64_t pages) { free_ += pages; }
  // Evicts at least `pages` pages from the leaves that were not used for longest, or all there are.
  void Evict(std::uint64_t pages);

  struct Match {
    std::uint64_t pages = 0;    // leading pages that are in the tree
    NodeId node = kRoot;        // node of the last of them
    std::uint64_t in_node = 0;  // how many of them are in that node
  };
  // Longest match of the first `limit` pages. Changes nothing.
  Match Find(SequenceBlocks& names, std::uint64_t limit) const;
  // The same, used: fully matched nodes are stamped, a partly matched one is split, and the result
  // is locked until Unlock or Finish.
  Match Lock(SequenceBlocks& names, std::uint64_t limit, Stamp stamp);
  void Unlock(NodeId node);

  struct Inserted {
    NodeId node = kRoot;
    std::uint64_t existing = 0;  // leading pages that the tree had already
  };
  // Adds pages [from, to) of a sequence below the locked node of its page from - 1, and moves the
  // lock to the last one.
  Inserted Extend(NodeId held, SequenceBlocks& names, std::uint64_t from, std::uint64_t to,
                  Stamp stamp);
  // The same, and drops the lock.
  Inserted Finish(NodeId held, SequenceBlocks& names, std::uint64_t from, std::uint64_t to,
                  Stamp stamp);

  // A leaf that only its holder can extend may lag behind: its owner appends pages when the tree
  // asks (CatchUp) or when it wants. Such a leaf counts as longer than it is.
  void set_growing(GrowingLeaves* leaves) { growing_ = leaves; }
  bool CanGrow(NodeId node) const {
    return node != kRoot && nodes_[node].locks == 1 && nodes_[node].children == 0;
  }
  void SetGrowing(NodeId node, std::uint32_t owner) { nodes_[node].owner = owner; }
  void ClearGrowing(NodeId node) { nodes_[node].owner = kNoOwner; }
  void Grow(NodeId node, SequenceBlocks& names, std::uint64_t from, std::uint64_t to);
  // Stamps a node and its ancestors, unless they were used later.
  void Touch(NodeId node, Stamp stamp);

  // Changes when Find may answer differently for the watched match, apart from growing leaves.
  std::uint64_t version() const { return version_; }
  // Changes with every eviction.
  std::uint64_t evictions() const { return evictions_; }
  void Watch(const Match& match) {
    watched_ = match.node;
    watched_pages_ = match.in_node;
  }
  bool Locked(NodeId node) const { return nodes_[node].locks > 0; }
  // Pages that can be evicted before the watched match, or more than one leaf, is touched.
  std::uint64_t PagesBeforeWatched();

  // Names of evicted pages are appended here; null switches it off.
  void set_evicted(std::vector<BlockName>* evicted) { evicted_ = evicted; }

  // Appends the groups of all names in the tree, with repetitions.
  void AppendGroups(std::vector<std::uint32_t>& groups) const;

  // Walks everything and aborts on an inconsistency. `outside`: pages that requests own. For tests.
  void CheckInvariants(std::uint64_t outside) const;

 private:
  static constexpr std::uint32_t kNoOwner = 0xFFFFFFFFU;

  struct Node {
    NodeId parent = kRoot;
    std::uint32_t locks = 0;
    std::uint32_t children = 0;
    std::uint32_t owner = kNoOwner;
    std::uint64_t pages = 0;  // 0: unused record
    Stamp stamp;
    std::vector<workload::BlockExtent> runs;
  };
  struct Candidate {  // valid while the node is an unlocked leaf with this stamp
    Stamp stamp;
    NodeId node = 0;
  };

  static BlockName Name(std::uint32_t group, std::uint32_t offset) {
    return (BlockName{group} << 32U) | offset;
  }
  static BlockName Name(const SequenceBlocks::Run& run) { return Name(run.group, run.offset); }

  NodeId NewNode(NodeId parent, Stamp stamp);
  static void Append(Node& node, SequenceBlocks& names, std::uint64_t from, std::uint64_t to);
  std::uint64_t CommonPages(const Node& node, SequenceBlocks& names, std::uint64_t from,
                            std::uint64_t limit) const;
  NodeId Split(NodeId node, std::uint64_t pages);
  Inserted Insert(NodeId start, SequenceBlocks& names, std::uint64_t from, std::uint64_t to,
                  Stamp stamp);
  void Lock(NodeId node, NodeId below);
  bool Evictable(NodeId node) const {
    return node != kRoot && nodes_[node].locks == 0 && nodes_[node].children == 0;
  }
  void AddCandidate(NodeId node);
  NodeId OldestCandidate();
  void DropTail(NodeId node, std::uint64_t pages);
  void Delete(NodeId node);

  std::uint64_t capacity_;
  std::uint64_t free_;
  std::uint64_t evictable_ = 0;
  std::uint64_t protected_ = 0;
  std::vector<Node> nodes_;
  std::vector<NodeId> unused_;
  FlatMap<BlockName, NodeId> by_first_;  // all nodes but the root
  std::vector<Candidate> candidates_;    // min-heap, with outdated entries
  std::uint64_t version_ = 0;
  std::uint64_t evictions_ = 0;
  NodeId watched_ = kRoot;
  std::uint64_t watched_pages_ = 0;
  GrowingLeaves* growing_ = nullptr;
  std::vector<BlockName>* evicted_ = nullptr;
};

}  // namespace dynosim::kv
