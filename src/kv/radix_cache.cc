// SPDX-License-Identifier: Apache-2.0
#include "kv/radix_cache.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kv/events.h"
#include "kv/sequence_blocks.h"
#include "workload/request.h"

namespace dynosim::kv {

namespace {

// Outdated heap entries that are tolerated beyond one per node.
constexpr std::size_t kHeapSlack = 64;

constexpr auto kLater = [](const auto& a, const auto& b) { return a.stamp > b.stamp; };

std::uint32_t Offset32(std::uint64_t block) { return static_cast<std::uint32_t>(block); }

}  // namespace

RadixCache::RadixCache(std::uint64_t pages) : capacity_(pages), free_(pages), nodes_(1) {}

void RadixCache::Take(std::uint64_t pages) {
  if (pages > free_) {
    Evict(pages - free_);
  }
  DYNO_CHECK(pages <= free_);
  free_ -= pages;
}

// How many pages of a node equal those of a sequence from page `from` on.
std::uint64_t RadixCache::CommonPages(const Node& node, SequenceBlocks& names, std::uint64_t from,
                                      std::uint64_t limit) const {
  std::uint64_t common = 0;
  for (const workload::BlockExtent& run : node.runs) {
    std::uint32_t done = 0;
    while (done < run.count) {
      if (from + common == limit) {
        return common;
      }
      const SequenceBlocks::Run other = names.At(Offset32(from + common));
      if (other.group != run.group || other.offset != run.first + done) {
        return common;
      }
      const std::uint64_t step =
          std::min<std::uint64_t>({other.count, run.count - done, limit - from - common});
      done += Offset32(step);
      common += step;
    }
  }
  return common;
}

RadixCache::Match RadixCache::Find(SequenceBlocks& names, std::uint64_t limit) const {
  Match match;
  while (match.pages < limit) {
    const NodeId* child = by_first_.Find(Name(names.At(Offset32(match.pages))));
    if (child == nullptr) {
      break;
    }
    const Node& node = nodes_[*child];
    match.node = *child;
    match.in_node = CommonPages(node, names, match.pages, limit);
    match.pages += match.in_node;
    if (match.in_node < node.pages) {
      break;
    }
  }
  return match;
}

RadixCache::Match RadixCache::Lock(SequenceBlocks& names, std::uint64_t limit, Stamp stamp) {
  Match match;
  while (match.pages < limit) {
    const NodeId* child = by_first_.Find(Name(names.At(Offset32(match.pages))));
    if (child == nullptr) {
      break;
    }
    NodeId id = *child;
    match.in_node = CommonPages(nodes_[id], names, match.pages, limit);
    if (match.in_node == nodes_[id].pages && nodes_[id].owner != kNoOwner) {
      growing_->CatchUp(nodes_[id].owner);
    }
    match.pages += match.in_node;
    if (match.in_node < nodes_[id].pages) {
      match.node = Split(id, match.in_node);
      break;
    }
    match.node = id;
    nodes_[id].stamp = stamp;
  }
  Lock(match.node, kRoot);
  return match;
}

void RadixCache::Lock(NodeId node, NodeId below) {
  for (; node != below; node = nodes_[node].parent) {
    Node& n = nodes_[node];
    if (n.locks++ == 0) {
      evictable_ -= n.pages;
      protected_ += n.pages;
    }
  }
}

void RadixCache::Unlock(NodeId node) {
  for (; node != kRoot; node = nodes_[node].parent) {
    Node& n = nodes_[node];
    DYNO_DCHECK(n.locks > 0);
    if (--n.locks == 0) {
      protected_ -= n.pages;
      evictable_ += n.pages;
      if (n.children == 0) {
        AddCandidate(node);
      }
    }
  }
}

RadixCache::NodeId RadixCache::NewNode(NodeId parent, Stamp stamp) {
  NodeId id = 0;
  if (unused_.empty()) {
    id = static_cast<NodeId>(nodes_.size());
    nodes_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
  }
  nodes_[id].parent = parent;
  nodes_[id].stamp = stamp;
  return id;
}

void RadixCache::Append(Node& node, SequenceBlocks& names, std::uint64_t from, std::uint64_t to) {
  node.pages += to - from;
  while (from < to) {
    const SequenceBlocks::Run run = names.At(Offset32(from));
    const auto count = Offset32(std::min<std::uint64_t>(run.count, to - from));
    if (!node.runs.empty() && node.runs.back().group == run.group &&
        node.runs.back().first + node.runs.back().count == run.offset) {
      node.runs.back().count += count;
    } else {
      node.runs.push_back({.group = run.group, .first = run.offset, .count = count});
    }
    from += count;
  }
}

// Cuts the first `pages` pages off into a new parent, which it returns. Holders keep the suffix.
RadixCache::NodeId RadixCache::Split(NodeId node, std::uint64_t pages) {
  ++version_;
  const NodeId upper_id = NewNode(nodes_[node].parent, nodes_[node].stamp);
  Node& upper = nodes_[upper_id];
  Node& lower = nodes_[node];
  upper.locks = lower.locks;
  upper.children = 1;
  upper.pages = pages;
  lower.parent = upper_id;
  lower.pages -= pages;
  std::size_t whole = 0;
  std::uint64_t left = pages;
  while (left >= lower.runs[whole].count) {
    left -= lower.runs[whole].count;
    ++whole;
  }
  const auto middle = lower.runs.begin() + static_cast<std::ptrdiff_t>(whole);
  upper.runs.assign(lower.runs.begin(), middle);
  if (left > 0) {
    workload::BlockExtent& cut = *middle;
    upper.runs.push_back({.group = cut.group, .first = cut.first, .count = Offset32(left)});
    cut.first += Offset32(left);
    cut.count -= Offset32(left);
  }
  lower.runs.erase(lower.runs.begin(), middle);
  by_first_[Name(upper.runs.front().group, upper.runs.front().first)] = upper_id;
  by_first_[Name(lower.runs.front().group, lower.runs.front().first)] = node;
  return upper_id;
}

RadixCache::Inserted RadixCache::Insert(NodeId start, SequenceBlocks& names, std::uint64_t from,
                                        std::uint64_t to, Stamp stamp) {
  if (from == to) {
    return {.node = start, .existing = 0};
  }
  for (NodeId node = start; node != kRoot; node = nodes_[node].parent) {
    nodes_[node].stamp = stamp;
  }
  const std::uint64_t first = from;
  NodeId current = start;
  while (from < to) {
    Node& node = nodes_[current];
    const bool only_holder = current == start && node.locks == 1;
    if (current != kRoot && node.children == 0 && (node.locks == 0 || only_holder)) {
      (node.locks == 0 ? evictable_ : protected_) += to - from;
      Append(node, names, from, to);
      if (node.locks == 0) {
        AddCandidate(current);
      }
      ++version_;
      return {.node = current, .existing = from - first};
    }
    const BlockName name = Name(names.At(Offset32(from)));
    const NodeId* child = by_first_.Find(name);
    if (child == nullptr) {
      const NodeId leaf = NewNode(current, stamp);
      ++nodes_[current].children;
      Append(nodes_[leaf], names, from, to);
      by_first_.TryInsert(name, leaf);
      evictable_ += to - from;
      ++version_;
      return {.node = leaf, .existing = from - first};
    }
    const NodeId next = *child;
    const std::uint64_t common = CommonPages(nodes_[next], names, from, to);
    from += common;
    if (common < nodes_[next].pages) {
      current = Split(next, common);
    } else {
      current = next;
      nodes_[current].stamp = stamp;
      if (Evictable(current)) {
        AddCandidate(current);
      }
    }
  }
  return {.node = current, .existing = to - first};
}

RadixCache::Inserted RadixCache::Extend(NodeId held, SequenceBlocks& names, std::uint64_t from,
                                        std::uint64_t to, Stamp stamp) {
  const Inserted inserted = Insert(held, names, from, to, stamp);
  Lock(inserted.node, held);
  return inserted;
}

RadixCache::Inserted RadixCache::Finish(NodeId held, SequenceBlocks& names, std::uint64_t from,
                                        std::uint64_t to, Stamp stamp) {
  const Inserted inserted = Insert(held, names, from, to, stamp);
  if (inserted.node != held && Evictable(inserted.node)) {
    AddCandidate(inserted.node);
  }
  Unlock(held);
  return inserted;
}

void RadixCache::Grow(NodeId node, SequenceBlocks& names, std::uint64_t from, std::uint64_t to) {
  DYNO_DCHECK(CanGrow(node));
  protected_ += to - from;
  Append(nodes_[node], names, from, to);
}

void RadixCache::Touch(NodeId node, Stamp stamp) {
  for (; node != kRoot; node = nodes_[node].parent) {
    nodes_[node].stamp = std::max(nodes_[node].stamp, stamp);
  }
}

void RadixCache::AddCandidate(NodeId node) {
  if (candidates_.size() > 2 * nodes_.size() + kHeapSlack) {
    candidates_.clear();
    for (NodeId id = 1; id < nodes_.size(); ++id) {
      if (nodes_[id].pages > 0 && Evictable(id)) {
        candidates_.push_back({nodes_[id].stamp, id});
      }
    }
    std::ranges::make_heap(candidates_, kLater);
  }
  candidates_.push_back({nodes_[node].stamp, node});
  std::ranges::push_heap(candidates_, kLater);
}

// kRoot when there is none.
RadixCache::NodeId RadixCache::OldestCandidate() {
  while (!candidates_.empty()) {
    const Candidate& top = candidates_.front();
    const Node& node = nodes_[top.node];
    if (node.pages > 0 && Evictable(top.node) && node.stamp == top.stamp) {
      return top.node;
    }
    std::ranges::pop_heap(candidates_, kLater);
    candidates_.pop_back();
  }
  return kRoot;
}

void RadixCache::Evict(std::uint64_t pages) {
  std::uint64_t evicted = 0;
  while (evicted < pages) {
    const NodeId victim = OldestCandidate();
    if (victim == kRoot) {
      break;
    }
    Node& node = nodes_[victim];
    const std::uint64_t count = std::min(pages - evicted, node.pages);
    if (victim == watched_ && node.pages - count < watched_pages_) {
      ++version_;
    }
    evicted += count;
    evictable_ -= count;
    free_ += count;
    if (count < node.pages) {
      DropTail(victim, count);
    } else {
      Delete(victim);
    }
  }
  ++evictions_;
}

void RadixCache::DropTail(NodeId id, std::uint64_t pages) {
  Node& node = nodes_[id];
  node.pages -= pages;
  const std::size_t first_new = evicted_ == nullptr ? 0 : evicted_->size();
  while (pages > 0) {
    workload::BlockExtent& run = node.runs.back();
    const auto count = Offset32(std::min<std::uint64_t>(run.count, pages));
    run.count -= count;
    if (evicted_ != nullptr) {
      for (std::uint32_t i = count; i-- > 0;) {
        evicted_->push_back(Name(run.group, run.first + run.count + i));
      }
    }
    if (run.count == 0) {
      node.runs.pop_back();
    }
    pages -= count;
  }
  if (evicted_ != nullptr) {
    // Collected back to front; reported in sequence order.
    std::reverse(evicted_->begin() + static_cast<std::ptrdiff_t>(first_new), evicted_->end());
  }
}

void RadixCache::Delete(NodeId id) {
  const BlockName first = Name(nodes_[id].runs.front().group, nodes_[id].runs.front().first);
  if (evicted_ != nullptr) {
    DropTail(id, nodes_[id].pages);
  }
  by_first_.Erase(first);
  Node& node = nodes_[id];
  const NodeId parent = node.parent;
  node.pages = 0;
  node.runs.clear();
  unused_.push_back(id);
  if (--nodes_[parent].children == 0 && Evictable(parent)) {
    AddCandidate(parent);
  }
}

std::uint64_t RadixCache::PagesBeforeWatched() {
  const NodeId victim = OldestCandidate();
  if (victim == kRoot) {
    return 0;
  }
  const std::uint64_t pages = nodes_[victim].pages;
  return victim == watched_ ? pages - std::min(pages, watched_pages_) : pages;
}

void RadixCache::AppendGroups(std::vector<std::uint32_t>& groups) const {
  for (const Node& node : nodes_) {
    if (node.pages > 0) {
      for (const workload::BlockExtent& run : node.runs) {
        groups.push_back(run.group);
      }
    }
  }
}

void RadixCache::CheckInvariants(std::uint64_t outside) const {
  std::uint64_t locked = 0;
  std::uint64_t unlocked = 0;
  std::size_t used = 0;
  std::vector<std::uint32_t> children(nodes_.size(), 0);
  for (NodeId id = 1; id < nodes_.size(); ++id) {
    const Node& node = nodes_[id];
    if (node.pages == 0) {
      continue;
    }
    ++used;
    ++children[node.parent];
    (node.locks > 0 ? locked : unlocked) += node.pages;
    DYNO_CHECK(node.parent == kRoot || nodes_[node.parent].locks >= node.locks);
    DYNO_CHECK(node.parent == kRoot || nodes_[node.parent].pages > 0);
    std::uint64_t pages = 0;
    for (const workload::BlockExtent& run : node.runs) {
      DYNO_CHECK(run.count > 0);
      pages += run.count;
    }
    DYNO_CHECK(pages == node.pages);
    const NodeId* found = by_first_.Find(Name(node.runs.front().group, node.runs.front().first));
    DYNO_CHECK(found != nullptr && *found == id);
  }
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    DYNO_CHECK(nodes_[id].children == children[id] || (id != kRoot && nodes_[id].pages == 0));
  }
  DYNO_CHECK(used == by_first_.size() && used + unused_.size() + 1 == nodes_.size());
  DYNO_CHECK(locked == protected_ && unlocked == evictable_);
  DYNO_CHECK(free_ + evictable_ + protected_ + outside == capacity_);
}

}  // namespace dynosim::kv
