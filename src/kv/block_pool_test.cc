// SPDX-License-Identifier: Apache-2.0
// The pool against a naive model that keeps every copy in plain lists.
#include "kv/block_pool.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "kv/events.h"
#include "kv/sequence_blocks.h"

namespace dynosim::kv {
namespace {

// Copies by name in insertion order, an LRU list of unreferenced ones, nothing clever.
class NaivePool {
 public:
  struct Copy {
    BlockName name;
    int refs = 1;
  };
  struct Table {
    std::vector<Copy*> cached;
    std::uint64_t blocks = 0;
  };

  explicit NaivePool(std::uint64_t capacity) : free_(capacity), capacity_(capacity) {}

  std::uint64_t Match(const std::vector<BlockName>& names, std::uint64_t limit,
                      std::uint64_t& active) {
    std::uint64_t n = 0;
    active = 0;
    while (n < limit && !by_name_[names[n]].empty()) {
      active += by_name_[names[n]].front()->refs > 0 ? 1 : 0;
      ++n;
    }
    return n;
  }

  bool Allocate(Table& t, const std::vector<BlockName>& names, std::uint64_t target,
                std::uint64_t reuse) {
    if (target <= t.blocks) {
      return true;
    }
    std::vector<Copy*> hits;
    std::uint64_t inactive_hits = 0;
    for (std::uint64_t i = 0; i < reuse; ++i) {
      hits.push_back(by_name_[names[i]].front());
      inactive_hits += hits.back()->refs == 0 ? 1 : 0;
    }
    const std::uint64_t fresh = target - t.blocks - reuse;
    const std::uint64_t evict = fresh > free_ ? fresh - free_ : 0;
    if (evict > 0 && evict > lru_.size() - inactive_hits) {
      return false;
    }
    for (Copy* c : hits) {
      if (c->refs++ == 0) {
        std::erase(lru_, c);
      }
      t.cached.push_back(c);
    }
    free_ -= fresh - evict;
    for (std::uint64_t i = 0; i < evict; ++i) {
      Evict();
    }
    t.blocks = target;
    return true;
  }

  void Publish(Table& t, const std::vector<BlockName>& names, std::uint64_t to) {
    while (t.cached.size() < to) {
      copies_.push_back({names[t.cached.size()], 1});
      by_name_[names[t.cached.size()]].push_back(&copies_.back());
      t.cached.push_back(&copies_.back());
    }
  }

  void Release(Table& t) {
    free_ += t.blocks - t.cached.size();
    for (auto it = t.cached.rbegin(); it != t.cached.rend(); ++it) {
      if (--(*it)->refs == 0) {
        lru_.push_back(*it);
      }
    }
    t = {};
  }

  std::uint64_t free() const { return free_; }
  std::uint64_t inactive() const { return lru_.size(); }
  std::uint64_t active() const { return capacity_ - free_ - lru_.size(); }
  std::vector<BlockName> removed;

 private:
  void Evict() {
    Copy* victim = lru_.front();
    lru_.pop_front();
    auto& copies = by_name_[victim->name];
    std::erase(copies, victim);
    if (copies.empty()) {
      removed.push_back(victim->name);
    }
  }

  std::uint64_t free_;
  std::uint64_t capacity_;
  std::deque<Copy> copies_;
  std::map<BlockName, std::vector<Copy*>> by_name_;
  std::list<Copy*> lru_;
};

class RecordingSink final : public EventSink {
 public:
  void OnStored(std::uint32_t, std::uint32_t, const std::vector<BlockName>& blocks) override {
    for (const BlockName b : blocks) {
      EXPECT_TRUE(held.insert(b).second) << "stored twice";
    }
  }
  void OnRemoved(const std::vector<BlockName>& blocks) override {
    for (const BlockName b : blocks) {
      EXPECT_EQ(held.erase(b), 1U) << "removed but not held";
      removed.push_back(b);
    }
  }
  std::set<BlockName> held;
  std::vector<BlockName> removed;
};

struct Sequence {
  SequenceBlocks names;
  std::vector<BlockName> flat;
  BlockTable table;
  NaivePool::Table naive;
};

// A prefix of shared runs, then a private tail.
void MakeSequence(ChaCha12& random, std::uint32_t id, Sequence& s) {
  auto& extents = s.names.extents();
  extents.clear();
  s.flat.clear();
  const std::uint32_t shared = random.NextBelow(4);
  std::uint32_t group = 0;
  for (std::uint32_t i = 0; i < shared; ++i) {
    group = group * 3 + 1 + random.NextBelow(2);
    extents.push_back({group, random.NextBelow(2) * 8, 1 + random.NextBelow(11)});
  }
  extents.push_back({1000 + id, 0, 20});
  for (const auto& e : extents) {
    for (std::uint32_t i = 0; i < e.count; ++i) {
      s.flat.push_back((BlockName{e.group} << 32) | (e.first + i));
    }
  }
  s.names.Rewind();
}

TEST(BlockPool, AgreesWithANaiveModelOnRandomOperations) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ChaCha12 random(seed);
    const std::uint64_t capacity = 8 + random.NextBelow(120);
    BlockPool pool(capacity);
    NaivePool naive(capacity);
    RecordingSink sink;
    pool.set_sink(&sink);
    std::vector<Sequence> sequences(6);
    std::uint32_t next_id = 0;
    for (Sequence& s : sequences) {
      MakeSequence(random, next_id++, s);
    }
    for (int step = 0; step < 4000; ++step) {
      Sequence& s = sequences[random.NextBelow(static_cast<std::uint32_t>(sequences.size()))];
      const std::uint32_t action = random.NextBelow(10);
      if (action < 5) {
        std::uint64_t naive_active = 0;
        const std::uint64_t naive_overlap = naive.Match(s.flat, s.flat.size(), naive_active);
        const BlockPool::Overlap overlap = pool.Match(s.names, s.flat.size());
        ASSERT_EQ(overlap.blocks, naive_overlap);
        ASSERT_EQ(overlap.active, naive_active);
        const std::uint64_t reuse =
            s.table.blocks == 0 ? random.NextBelow(static_cast<std::uint32_t>(overlap.blocks) + 1)
                                : 0;
        const std::uint64_t target = std::min<std::uint64_t>(
            s.flat.size(), std::max(reuse, s.table.blocks) + random.NextBelow(9));
        ASSERT_EQ(pool.Allocate(s.table, s.names, target, reuse),
                  naive.Allocate(s.naive, s.flat, target, reuse));
      } else if (action < 8) {
        const std::uint64_t open = s.table.blocks - s.table.cached.size();
        const std::uint64_t to =
            s.table.cached.size() + random.NextBelow(static_cast<std::uint32_t>(open) + 1);
        pool.Publish(s.table, s.names, to, 0);
        naive.Publish(s.naive, s.flat, to);
      } else {
        pool.Release(s.table);
        naive.Release(s.naive);
        if (action == 9) {
          MakeSequence(random, next_id++, s);
        }
      }
      ASSERT_EQ(pool.free(), naive.free());
      ASSERT_EQ(pool.inactive(), naive.inactive());
      ASSERT_EQ(pool.active(), naive.active());
      ASSERT_EQ(s.table.blocks, s.naive.blocks);
      if (step % 64 == 0) {
        pool.CheckInvariants();
      }
    }
    pool.CheckInvariants();
    EXPECT_EQ(sink.removed, naive.removed) << "evictions in another order, seed " << seed;
  }
}

TEST(BlockPool, EvictsTheTailOfAReleasedSequenceBeforeItsHead) {
  BlockPool pool(4);
  RecordingSink sink;
  pool.set_sink(&sink);
  Sequence a;
  a.names.extents() = {{7, 0, 4}};
  ASSERT_TRUE(pool.Allocate(a.table, a.names, 4, 0));
  pool.Publish(a.table, a.names, 4, 0);
  pool.Release(a.table);
  Sequence b;
  b.names.extents() = {{8, 0, 4}};
  ASSERT_TRUE(pool.Allocate(b.table, b.names, 2, 0));
  const BlockName base = BlockName{7} << 32;
  EXPECT_EQ(sink.removed, (std::vector<BlockName>{base | 3, base | 2}));
  EXPECT_EQ(pool.Match(a.names, 4).blocks, 2U);
}

TEST(BlockPool, AHitIsALeadingRunAndStopsAtTheFirstHole) {
  BlockPool pool(8);
  Sequence a;
  a.names.extents() = {{1, 0, 1}, {2, 0, 2}};
  ASSERT_TRUE(pool.Allocate(a.table, a.names, 3, 0));
  pool.Publish(a.table, a.names, 3, 0);
  Sequence other_head;
  other_head.names.extents() = {{9, 0, 1}, {2, 0, 2}};
  EXPECT_EQ(pool.Match(other_head.names, 3).blocks, 0U);
  EXPECT_EQ(pool.Match(a.names, 3).blocks, 3U);
  EXPECT_EQ(pool.Match(a.names, 3).active, 3U);
  pool.Release(a.table);
  EXPECT_EQ(pool.Match(a.names, 3).active, 0U);
}

TEST(BlockPool, AFailedAllocationChangesNothing) {
  BlockPool pool(4);
  Sequence a;
  a.names.extents() = {{1, 0, 8}};
  ASSERT_TRUE(pool.Allocate(a.table, a.names, 3, 0));
  pool.Publish(a.table, a.names, 3, 0);
  pool.Release(a.table);
  Sequence b;
  b.names.extents() = {{1, 0, 8}};
  // Two hits keep two of the three cached blocks; only one more can be evicted.
  EXPECT_FALSE(pool.Allocate(b.table, b.names, 5, 2));
  EXPECT_EQ(pool.inactive(), 3U);
  EXPECT_EQ(pool.free(), 1U);
  EXPECT_TRUE(b.table.cached.empty());
  EXPECT_TRUE(pool.Allocate(b.table, b.names, 4, 2));
  EXPECT_EQ(pool.active(), 4U);
  pool.CheckInvariants();
}

TEST(BlockPool, ReservationsCountAsActiveAndCanBeGivenBack) {
  BlockPool pool(6);
  Sequence a;
  a.names.extents() = {{1, 0, 8}};
  ASSERT_TRUE(pool.Allocate(a.table, a.names, 2, 0));
  pool.Publish(a.table, a.names, 2, 0);
  pool.Release(a.table);
  Sequence b;
  b.names.extents() = {{1, 0, 8}};
  ASSERT_TRUE(pool.Reserve(b.table, b.names, 3, 4));
  EXPECT_EQ(pool.reserved(), 2U);
  EXPECT_EQ(pool.active(), 4U);
  pool.CancelReservation(b.table, 4);
  EXPECT_EQ(pool.active(), 0U);
  EXPECT_EQ(pool.inactive(), 2U);
  pool.CheckInvariants();
}

}  // namespace
}  // namespace dynosim::kv
