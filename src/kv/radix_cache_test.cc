// SPDX-License-Identifier: Apache-2.0
#include "kv/radix_cache.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/cases_for_test.h"
#include "base/random.h"
#include "kv/events.h"
#include "kv/sequence_blocks.h"
#include "workload/request.h"

namespace dynosim::kv {
namespace {

using Tokens = std::vector<int>;

// Names token sequences the way a workload does: one name per distinct prefix. Neighbours in a run
// of equal tokens get consecutive offsets of one group, so that runs are longer than a page.
class Names {
 public:
  SequenceBlocks Of(const Tokens& tokens) {
    SequenceBlocks blocks;
    Tokens prefix;
    for (const int token : tokens) {
      prefix.push_back(token);
      const BlockName name = Name(prefix);
      const auto group = static_cast<std::uint32_t>(name >> 32U);
      const auto offset = static_cast<std::uint32_t>(name);
      auto& extents = blocks.extents();
      if (!extents.empty() && extents.back().group == group &&
          extents.back().first + extents.back().count == offset) {
        ++extents.back().count;
      } else {
        extents.push_back({.group = group, .first = offset, .count = 1});
      }
    }
    blocks.Rewind();
    return blocks;
  }
  BlockName Name(const Tokens& prefix) {
    const auto known = names_.find(prefix);
    if (known != names_.end()) {
      return known->second;
    }
    BlockName name = next_group_ << 32U;
    if (prefix.size() >= 2 && prefix[prefix.size() - 1] == prefix[prefix.size() - 2]) {
      Tokens shorter = prefix;
      shorter.pop_back();
      name = Name(shorter) + 1;
    } else {
      ++next_group_;
    }
    names_.emplace(prefix, name);
    return name;
  }

 private:
  std::map<Tokens, BlockName> names_;
  BlockName next_group_ = 0;
};

// The tree of chapter 20, section 3, one token per key, with plain pointers and full scans.
class NaiveTree {
 public:
  struct Node {
    Node* parent = nullptr;
    Tokens keys;
    int locks = 0;
    std::uint64_t stamp = 0;
    std::vector<std::unique_ptr<Node>> children;
  };

  explicit NaiveTree(std::uint64_t pages) : free(pages) {}

  std::uint64_t Find(const Tokens& tokens) const {
    const Node* node = &root;
    std::size_t matched = 0;
    while (matched < tokens.size()) {
      const Node* child = Child(*node, tokens[matched]);
      if (child == nullptr) {
        break;
      }
      const std::size_t common = Common(*child, tokens, matched);
      matched += common;
      if (common < child->keys.size()) {
        break;
      }
      node = child;
    }
    return matched;
  }

  std::pair<std::uint64_t, Node*> Lock(const Tokens& tokens, std::uint64_t stamp) {
    Node* node = &root;
    std::size_t matched = 0;
    while (matched < tokens.size()) {
      Node* child = Child(*node, tokens[matched]);
      if (child == nullptr) {
        break;
      }
      const std::size_t common = Common(*child, tokens, matched);
      matched += common;
      if (common < child->keys.size()) {
        node = Split(child, common);
        break;
      }
      child->stamp = stamp;
      node = child;
    }
    for (Node* n = node; n != &root; n = n->parent) {
      ++n->locks;
    }
    return {matched, node};
  }

  void Unlock(Node* node) {
    for (; node != &root; node = node->parent) {
      --node->locks;
    }
  }

  std::pair<Node*, std::uint64_t> Insert(Node* start, const Tokens& tokens, std::size_t from,
                                         std::uint64_t stamp) {
    std::uint64_t existing = 0;
    if (from == tokens.size()) {
      return {start, 0};
    }
    for (Node* n = start; n != &root; n = n->parent) {
      n->stamp = stamp;
    }
    Node* current = start;
    while (from < tokens.size()) {
      const bool held = current->locks == 0 || (current == start && current->locks == 1);
      if (current != &root && current->children.empty() && held) {
        current->keys.insert(current->keys.end(),
                             tokens.begin() + static_cast<std::ptrdiff_t>(from), tokens.end());
        current->stamp = stamp;
        return {current, existing};
      }
      Node* child = Child(*current, tokens[from]);
      if (child == nullptr) {
        auto leaf = std::make_unique<Node>();
        leaf->parent = current;
        leaf->keys.assign(tokens.begin() + static_cast<std::ptrdiff_t>(from), tokens.end());
        leaf->stamp = stamp;
        current->children.push_back(std::move(leaf));
        return {current->children.back().get(), existing};
      }
      const std::size_t common = Common(*child, tokens, from);
      from += common;
      existing += common;
      if (common < child->keys.size()) {
        current = Split(child, common);
      } else {
        child->stamp = stamp;
        current = child;
      }
    }
    return {current, existing};
  }

  // Returns the evicted prefixes' lengths only as a count; the oldest unlocked leaf goes first.
  void Evict(std::uint64_t pages) {
    while (pages > 0) {
      Node* victim = nullptr;
      Visit(&root, [&](Node* n) {
        if (n->locks == 0 && n->children.empty() &&
            (victim == nullptr || n->stamp < victim->stamp)) {
          victim = n;
        }
      });
      if (victim == nullptr) {
        return;
      }
      const std::uint64_t count = std::min<std::uint64_t>(pages, victim->keys.size());
      pages -= count;
      free += count;
      if (count < victim->keys.size()) {
        victim->keys.resize(victim->keys.size() - count);
      } else {
        auto& siblings = victim->parent->children;
        std::erase_if(siblings, [&](const auto& n) { return n.get() == victim; });
      }
    }
  }

  std::uint64_t Sum(bool locked) {
    std::uint64_t sum = 0;
    Visit(&root, [&](Node* n) { sum += (n->locks > 0) == locked ? n->keys.size() : 0; });
    return sum;
  }

  Node root;
  std::uint64_t free;

 private:
  static Node* Child(const Node& node, int token) {
    for (const auto& child : node.children) {
      if (child->keys.front() == token) {
        return child.get();
      }
    }
    return nullptr;
  }
  static std::size_t Common(const Node& node, const Tokens& tokens, std::size_t from) {
    std::size_t common = 0;
    while (common < node.keys.size() && from + common < tokens.size() &&
           node.keys[common] == tokens[from + common]) {
      ++common;
    }
    return common;
  }
  static Node* Split(Node* node, std::size_t at) {
    Node* parent = node->parent;
    for (auto& slot : parent->children) {
      if (slot.get() == node) {
        auto upper = std::make_unique<Node>();
        const auto middle = node->keys.begin() + static_cast<std::ptrdiff_t>(at);
        upper->parent = parent;
        upper->keys.assign(node->keys.begin(), middle);
        upper->locks = node->locks;
        upper->stamp = node->stamp;
        node->keys.erase(node->keys.begin(), middle);
        node->parent = upper.get();
        upper->children.push_back(std::move(slot));
        slot = std::move(upper);
        return slot.get();
      }
    }
    return nullptr;
  }
  template <class F>
  static void Visit(Node* node, const F& f) {
    for (const auto& child : node->children) {
      Visit(child.get(), f);
      f(child.get());
    }
  }
};

// A request that holds a lock and owns pages beyond the tree.
struct Holder {
  Tokens tokens;
  SequenceBlocks names;
  RadixCache::NodeId node = RadixCache::kRoot;
  NaiveTree::Node* naive = nullptr;
  std::size_t cached = 0;
};

class Pair {
 public:
  explicit Pair(std::uint64_t pages, std::uint64_t seed) : real(pages), naive(pages), rng(seed) {}

  std::size_t Draw(std::size_t below) { return rng.NextBelow(static_cast<std::uint32_t>(below)); }
  Tokens DrawTokens() {
    Tokens tokens(1 + Draw(12));
    int token = 0;
    for (int& t : tokens) {
      token = Draw(3) == 0 ? static_cast<int>(Draw(3)) : token;
      t = token;
    }
    return tokens;
  }
  Stamp Next(std::uint64_t& plain) {
    plain = ++clock;
    return {.major = clock / 3, .minor = clock};
  }

  void Admit() {
    Holder h;
    h.tokens = DrawTokens();
    h.names = names.Of(h.tokens);
    const std::size_t limit = Draw(h.tokens.size() + 1);
    const Tokens prefix(h.tokens.begin(), h.tokens.begin() + static_cast<std::ptrdiff_t>(limit));
    EXPECT_EQ(real.Find(h.names, limit).pages, naive.Find(prefix));
    std::uint64_t stamp = 0;
    const RadixCache::Match match = real.Lock(h.names, limit, Next(stamp));
    const auto [matched, node] = naive.Lock(prefix, stamp);
    EXPECT_EQ(match.pages, matched);
    h.node = match.node;
    h.naive = node;
    h.cached = matched;
    if (h.tokens.size() - h.cached > real.available()) {
      real.Unlock(h.node);
      naive.Unlock(h.naive);
      return;
    }
    Take(h.tokens.size() - h.cached);
    holders.push_back(std::move(h));
  }
  void Take(std::uint64_t pages) {
    if (pages > naive.free) {
      naive.Evict(pages - naive.free);
    }
    naive.free -= pages;
    real.Take(pages);
  }
  void Cache(Holder& h, std::size_t to) {
    std::uint64_t stamp = 0;
    const RadixCache::Inserted got = real.Extend(h.node, h.names, h.cached, to, Next(stamp));
    const Tokens prefix(h.tokens.begin(), h.tokens.begin() + static_cast<std::ptrdiff_t>(to));
    const auto [node, existing] = naive.Insert(h.naive, prefix, h.cached, stamp);
    for (NaiveTree::Node* n = node; n != &naive.root; n = n->parent) {
      ++n->locks;
    }
    naive.Unlock(h.naive);
    naive.free += existing;
    real.Return(got.existing);
    EXPECT_EQ(got.existing, existing);
    h.node = got.node;
    h.naive = node;
    h.cached = to;
  }
  void Grow(Holder& h) {
    if (real.available() == 0) {
      return;
    }
    Take(1);
    h.tokens.push_back(static_cast<int>(Draw(3)));
    h.names = names.Of(h.tokens);
  }
  void End(std::size_t which, bool keep) {
    Holder& h = holders[which];
    std::uint64_t stamp = 0;
    if (keep) {
      const RadixCache::Inserted got =
          real.Finish(h.node, h.names, h.cached, h.tokens.size(), Next(stamp));
      const auto [node, existing] = naive.Insert(h.naive, h.tokens, h.cached, stamp);
      naive.free += existing;
      real.Return(got.existing);
      EXPECT_EQ(got.existing, existing);
    } else {
      real.Return(h.tokens.size() - h.cached);
      naive.free += h.tokens.size() - h.cached;
      real.Unlock(h.node);
    }
    naive.Unlock(h.naive);
    holders.erase(holders.begin() + static_cast<std::ptrdiff_t>(which));
  }
  void Step() {
    const std::size_t kind = Draw(10);
    if (kind < 3 || holders.empty()) {
      Admit();
      return;
    }
    const std::size_t which = Draw(holders.size());
    Holder& h = holders[which];
    if (kind < 5) {
      Cache(h, h.cached + Draw(h.tokens.size() - h.cached + 1));
    } else if (kind < 7) {
      Grow(h);
    } else {
      End(which, kind < 9);
    }
  }
  void Check() {
    std::uint64_t outside = 0;
    for (const Holder& h : holders) {
      outside += h.tokens.size() - h.cached;
    }
    real.CheckInvariants(outside);
    ASSERT_EQ(real.free(), naive.free);
    ASSERT_EQ(real.evictable(), naive.Sum(false));
    ASSERT_EQ(real.protected_pages(), naive.Sum(true));
  }

  Names names;
  RadixCache real;
  NaiveTree naive;
  ChaCha12 rng;
  std::uint64_t clock = 0;
  std::vector<Holder> holders;
};

TEST(RadixCache, BehavesAsTheNaiveTreeOverRandomOperations) {
  for (std::uint64_t seed = 0; seed < Cases(100); ++seed) {
    Pair pair(8 + seed, seed);
    for (int i = 0; i < 1000; ++i) {
      pair.Step();
      if (i % 10 == 0) {
        pair.Check();
      }
      ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << " step " << i;
    }
    while (!pair.holders.empty()) {
      pair.End(0, true);
    }
    pair.Check();
    EXPECT_EQ(pair.real.protected_pages(), 0U);
  }
}

TEST(RadixCache, EvictionTakesTheTailOfTheOldestLeafFirst) {
  Names names;
  RadixCache cache(10);
  SequenceBlocks old_names = names.Of({1, 1, 1, 1});
  SequenceBlocks new_names = names.Of({2, 2, 2});
  cache.Take(7);
  cache.Finish(RadixCache::kRoot, old_names, 0, 4, {1, 0});
  cache.Finish(RadixCache::kRoot, new_names, 0, 3, {2, 0});
  std::vector<BlockName> evicted;
  cache.set_evicted(&evicted);
  cache.Take(5);
  EXPECT_EQ(cache.Find(old_names, 4).pages, 2U);
  EXPECT_EQ(cache.Find(new_names, 3).pages, 3U);
  EXPECT_EQ(evicted, (std::vector<BlockName>{names.Name({1, 1, 1}), names.Name({1, 1, 1, 1})}));
}

TEST(RadixCache, ASplitLeavesTheOldStampOnBothHalves) {
  Names names;
  RadixCache cache(10);
  SequenceBlocks first = names.Of({1, 1, 1, 1});
  SequenceBlocks second = names.Of({2, 2});
  cache.Take(6);
  cache.Finish(RadixCache::kRoot, first, 0, 4, {1, 0});
  cache.Finish(RadixCache::kRoot, second, 0, 2, {2, 0});
  // A partial match does not refresh the node, so it is still evicted before the other.
  cache.Unlock(cache.Lock(first, 3, {3, 0}).node);
  cache.Evict(4);
  EXPECT_EQ(cache.Find(first, 4).pages, 0U);
  EXPECT_EQ(cache.Find(second, 2).pages, 2U);
}

TEST(RadixCache, AWholeMatchRefreshesTheNode) {
  Names names;
  RadixCache cache(10);
  SequenceBlocks first = names.Of({1, 1, 1, 1});
  SequenceBlocks second = names.Of({2, 2});
  cache.Take(6);
  cache.Finish(RadixCache::kRoot, first, 0, 4, {1, 0});
  cache.Finish(RadixCache::kRoot, second, 0, 2, {2, 0});
  cache.Unlock(cache.Lock(first, 4, {3, 0}).node);
  cache.Evict(2);
  EXPECT_EQ(cache.Find(first, 4).pages, 4U);
  EXPECT_EQ(cache.Find(second, 2).pages, 0U);
}

class OneLeaf final : public GrowingLeaves {
 public:
  OneLeaf(RadixCache& cache, SequenceBlocks& names) : cache_(cache), names_(names) {}
  void CatchUp(std::uint32_t owner) override {
    EXPECT_EQ(owner, 7U);
    cache_.Grow(node, names_, cached, tokens);
    cached = tokens;
  }
  RadixCache::NodeId node = RadixCache::kRoot;
  std::uint64_t cached = 0;
  std::uint64_t tokens = 0;

 private:
  RadixCache& cache_;
  SequenceBlocks& names_;
};

TEST(RadixCache, AGrowingLeafIsSplitWhereItsWrittenPartEnds) {
  Names names;
  RadixCache cache(20);
  SequenceBlocks grower = names.Of({1, 1, 1, 2, 2, 2});
  SequenceBlocks other = names.Of({1, 1, 1, 3});
  OneLeaf leaf(cache, grower);
  cache.set_growing(&leaf);
  cache.Take(6);
  leaf.node = cache.Extend(RadixCache::kRoot, grower, 0, 3, {1, 0}).node;
  leaf.cached = 3;
  leaf.tokens = 6;
  cache.SetGrowing(leaf.node, 7);
  const RadixCache::Match match = cache.Lock(other, 3, {2, 0});
  EXPECT_EQ(match.pages, 3U);
  EXPECT_NE(match.node, leaf.node);
  EXPECT_EQ(leaf.cached, 6U);
  EXPECT_TRUE(cache.CanGrow(leaf.node));
  cache.CheckInvariants(0);
  EXPECT_EQ(cache.protected_pages(), 6U);
}

TEST(RadixCache, TheVersionChangesWhenAWatchedMatchShrinks) {
  Names names;
  RadixCache cache(10);
  SequenceBlocks blocks = names.Of({1, 1, 1, 1, 1});
  cache.Take(5);
  cache.Finish(RadixCache::kRoot, blocks, 0, 5, {1, 0});
  cache.Watch(cache.Find(blocks, 3));
  EXPECT_EQ(cache.PagesBeforeWatched(), 2U);
  const std::uint64_t before = cache.version();
  cache.Evict(2);
  EXPECT_EQ(cache.version(), before);
  cache.Evict(1);
  EXPECT_NE(cache.version(), before);
}

}  // namespace
}  // namespace dynosim::kv
