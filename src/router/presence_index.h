// SPDX-License-Identifier: Apache-2.0
// PresenceIndex: which targets hold which blocks. A lookup walks the prompt once, over all targets
// together: each block has one bit per target, so its cost is O(prompt blocks), with an early end
// when no target matches any more.
//
// Blocks are kept in slabs of eight consecutive offsets of one group, so that a walk needs one hash
// probe per eight blocks. A slab that a single target holds, as nearly all do, is a target and
// eight bits; only further ones have a row of bits per block. Empty slabs are given back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/flat_map.h"
#include "kv/events.h"
#include "workload/request.h"

namespace dynosim::router {

// Leading blocks of a prompt that a target holds; at least 1.
struct PrefixMatch {
  std::uint32_t target = 0;
  std::uint32_t blocks = 0;
};

class PresenceIndex {
 public:
  explicit PresenceIndex(std::uint32_t targets);

  // The group of a block's name (workload/request.h).
  static std::uint32_t GroupOf(kv::BlockName name) {
    return static_cast<std::uint32_t>(name >> 32U);
  }

  // False if the target holds the block already.
  bool Add(std::uint32_t target, kv::BlockName name);
  // False if the target does not hold the block.
  bool Remove(std::uint32_t target, kv::BlockName name);
  bool Holds(std::uint32_t target, kv::BlockName name);

  // Adds the first `limit` blocks of a sequence; calls repeated(name) for those that are there
  // already. Returns how many are new.
  template <class F>
  std::uint64_t AddSequence(std::uint32_t target, std::span<const workload::BlockExtent> extents,
                            std::uint64_t limit, const F& repeated) {
    std::uint64_t added = 0;
    ForEachChunk(extents, limit, [&](std::uint64_t key, std::uint32_t from, std::uint32_t count) {
      Slab& slab = FindOrAdd(key, target);
      for (std::uint32_t i = from; i < from + count; ++i) {
        if (Set(slab, i, target)) {
          ++added;
        } else {
          repeated(NameOf(key, i));
        }
      }
      return true;
    });
    return added;
  }
  // Removes the first `limit` blocks of a sequence, all of which the target holds, except those for
  // which keep(name) is true. Returns how many are gone.
  template <class F>
  std::uint64_t RemoveSequence(std::uint32_t target, std::span<const workload::BlockExtent> extents,
                               std::uint64_t limit, const F& keep) {
    std::uint64_t removed = 0;
    ForEachChunk(extents, limit, [&](std::uint64_t key, std::uint32_t from, std::uint32_t count) {
      Slab& slab = *Find(key);
      for (std::uint32_t i = from; i < from + count; ++i) {
        if (!keep(NameOf(key, i))) {
          Clear(slab, i, target);
          ++removed;
        }
      }
      EraseIfEmpty(slab, key);
      return true;
    });
    return removed;
  }

  // Replaces `out` by the targets that hold the first block of a sequence, with the number of
  // leading blocks they hold among the first `limit`. The order of targets is not defined.
  void Match(std::span<const workload::BlockExtent> extents, std::uint64_t limit,
             std::vector<PrefixMatch>& out);

  std::size_t slabs() const { return slabs_.size(); }

 private:
  static constexpr std::uint32_t kSlabBits = 3;
  static constexpr std::uint32_t kSlabSize = 1U << kSlabBits;

  struct Slab {
    std::uint32_t where = 0;  // its target, or the place of its rows
    std::uint8_t held = 0;    // one bit per block, while a single target holds any
    bool has_rows = false;
  };

  static std::uint64_t KeyOf(kv::BlockName name) { return name >> kSlabBits; }
  static std::uint32_t PositionOf(kv::BlockName name) {
    return static_cast<std::uint32_t>(name % kSlabSize);
  }
  static kv::BlockName NameOf(std::uint64_t key, std::uint32_t position) {
    return (key << kSlabBits) | position;
  }

  // Calls f(slab key, first position, count) for the pieces of the first `limit` blocks, until it
  // returns false.
  template <class F>
  static void ForEachChunk(std::span<const workload::BlockExtent> extents, std::uint64_t limit,
                           const F& f) {
    for (const workload::BlockExtent& extent : extents) {
      std::uint64_t left = std::min<std::uint64_t>(extent.count, limit);
      limit -= left;
      kv::BlockName name = (kv::BlockName{extent.group} << 32U) | extent.first;
      while (left > 0) {
        const std::uint32_t from = PositionOf(name);
        const auto count =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(left, kSlabSize - from));
        if (!f(KeyOf(name), from, count)) {
          return;
        }
        name += count;
        left -= count;
      }
      if (limit == 0) {
        return;
      }
    }
  }

  const std::uint64_t* Row(const Slab& slab, std::uint32_t position) const {
    return rows_.data() + (std::size_t{slab.where} * kSlabSize + position) * words_;
  }
  std::uint64_t* Row(const Slab& slab, std::uint32_t position) {
    return rows_.data() + (std::size_t{slab.where} * kSlabSize + position) * words_;
  }
  bool Has(const Slab& slab, std::uint32_t position, std::uint32_t target) const {
    if (!slab.has_rows) {
      return slab.where == target && ((slab.held >> position) & 1U) != 0;
    }
    return ((Row(slab, position)[target / 64] >> (target % 64)) & 1U) != 0;
  }
  bool Set(Slab& slab, std::uint32_t position, std::uint32_t target) {
    if (Has(slab, position, target)) {
      return false;
    }
    if (!slab.has_rows) {
      if (slab.where == target) {
        slab.held = static_cast<std::uint8_t>(slab.held | (1U << position));
        return true;
      }
      GiveRows(slab);
    }
    Row(slab, position)[target / 64] |= 1ULL << (target % 64);
    return true;
  }
  void Clear(Slab& slab, std::uint32_t position, std::uint32_t target) {
    if (slab.has_rows) {
      Row(slab, position)[target / 64] &= ~(1ULL << (target % 64));
    } else {
      slab.held = static_cast<std::uint8_t>(slab.held & ~(1U << position));
    }
  }
  // Runs of names share a slab, so the one that was looked up last is kept at hand.
  Slab* Find(std::uint64_t key) {
    if (key != last_key_) {
      last_slab_ = slabs_.Find(key);
      last_key_ = key;
    }
    return last_slab_;
  }
  Slab& FindOrAdd(std::uint64_t key, std::uint32_t target) {
    if (key != last_key_ || last_slab_ == nullptr) {
      last_slab_ = slabs_.TryInsert(key, Slab{.where = target}).first;
      last_key_ = key;
    }
    return *last_slab_;
  }
  void GiveRows(Slab& slab);
  bool Empty(const Slab& slab) const;
  void EraseIfEmpty(const Slab& slab, std::uint64_t key);

  // Narrows `alive_` to the targets that hold the block, noting those that drop out after `blocks`
  // blocks. False when none is left.
  bool Narrow(const std::uint64_t* row, std::uint32_t blocks, std::vector<PrefixMatch>& out);
  bool AllHold(const Slab& slab, std::uint32_t from, std::uint32_t count) const;
  void NoteAlive(std::uint32_t blocks, std::vector<PrefixMatch>& out) const;

  std::size_t words_;  // of one row
  std::uint32_t targets_;
  FlatMap<std::uint64_t, Slab> slabs_;
  std::vector<std::uint64_t> rows_;       // by place, position, word
  std::vector<std::uint32_t> free_rows_;  // places
  std::vector<std::uint64_t> alive_;      // during a match
  std::vector<std::uint64_t> only_;       // a row with one target, during a match
  std::uint64_t last_key_ = ~0ULL;
  Slab* last_slab_ = nullptr;
};

}  // namespace dynosim::router
