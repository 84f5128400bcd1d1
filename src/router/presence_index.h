// SPDX-License-Identifier: Apache-2.0
// PresenceIndex: which targets hold which blocks. A lookup walks the prompt once, over all targets
// together: each block has one bit per target, so its cost is O(prompt blocks), with an early end
// when no target matches any more.
//
// Bits are kept in slabs of eight consecutive offsets of one group, so that a walk needs one hash
// probe per eight blocks. A slab without bits is given back.
#pragma once

#include <algorithm>
#include <bit>
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

  // False if the target holds the block already.
  bool Add(std::uint32_t target, kv::BlockName name);
  // False if the target does not hold the block.
  bool Remove(std::uint32_t target, kv::BlockName name);
  bool Holds(std::uint32_t target, kv::BlockName name) const;

  // Adds the first `limit` blocks of a sequence; calls repeated(name) for those that are there
  // already. Returns how many are new.
  template <class F>
  std::uint64_t AddSequence(std::uint32_t target, std::span<const workload::BlockExtent> extents,
                            std::uint64_t limit, const F& repeated) {
    std::uint64_t added = 0;
    ForEachChunk(extents, limit, [&](std::uint64_t key, std::uint32_t from, std::uint32_t count) {
      const std::uint32_t slab = FindOrAddSlab(key);
      for (std::uint32_t i = from; i < from + count; ++i) {
        if (SetBit(slab, i, target)) {
          ++added;
        } else {
          repeated(NameOf(key, i));
        }
      }
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
      const std::uint32_t slab = FindSlab(key);
      for (std::uint32_t i = from; i < from + count; ++i) {
        if (!keep(NameOf(key, i))) {
          ClearBit(slab, i, target);
          ++removed;
        }
      }
      FreeIfEmpty(slab, key);
    });
    return removed;
  }

  // Replaces `out` by the targets that hold the first block of a sequence, with the number of
  // leading blocks they hold among the first `limit`. The order of targets is not defined.
  void Match(std::span<const workload::BlockExtent> extents, std::uint64_t limit,
             std::vector<PrefixMatch>& out);

  std::size_t slabs() const { return slab_of_.size(); }

 private:
  static constexpr std::uint32_t kSlabBits = 3;
  static constexpr std::uint32_t kSlabSize = 1U << kSlabBits;
  static constexpr std::uint32_t kNoSlab = 0xFFFFFFFFU;

  static std::uint64_t KeyOf(kv::BlockName name) { return name >> kSlabBits; }
  static kv::BlockName NameOf(std::uint64_t key, std::uint32_t position) {
    return (key << kSlabBits) | position;
  }

  // Calls f(slab key, first position, count) for the pieces of the first `limit` blocks.
  template <class F>
  static void ForEachChunk(std::span<const workload::BlockExtent> extents, std::uint64_t limit,
                           const F& f) {
    for (const workload::BlockExtent& extent : extents) {
      std::uint64_t left = std::min<std::uint64_t>(extent.count, limit);
      limit -= left;
      kv::BlockName name = (kv::BlockName{extent.group} << 32U) | extent.first;
      while (left > 0) {
        const auto from = static_cast<std::uint32_t>(name % kSlabSize);
        const auto count =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(left, kSlabSize - from));
        f(KeyOf(name), from, count);
        name += count;
        left -= count;
      }
      if (limit == 0) {
        return;
      }
    }
  }

  std::uint64_t* Row(std::uint32_t slab, std::uint32_t position) {
    return bits_.data() + (std::size_t{slab} * kSlabSize + position) * words_;
  }
  const std::uint64_t* Row(std::uint32_t slab, std::uint32_t position) const {
    return bits_.data() + (std::size_t{slab} * kSlabSize + position) * words_;
  }
  bool SetBit(std::uint32_t slab, std::uint32_t position, std::uint32_t target) {
    std::uint64_t& word = Row(slab, position)[target / 64];
    const std::uint64_t bit = 1ULL << (target % 64);
    if ((word & bit) != 0) {
      return false;
    }
    word |= bit;
    ++used_[slab];
    return true;
  }
  bool ClearBit(std::uint32_t slab, std::uint32_t position, std::uint32_t target) {
    std::uint64_t& word = Row(slab, position)[target / 64];
    const std::uint64_t bit = 1ULL << (target % 64);
    if ((word & bit) == 0) {
      return false;
    }
    word &= ~bit;
    --used_[slab];
    return true;
  }
  std::uint32_t FindSlab(std::uint64_t key) const {
    if (key == last_key_) {
      return last_slab_;
    }
    const std::uint32_t* slab = slab_of_.Find(key);
    if (slab == nullptr) {
      return kNoSlab;
    }
    last_key_ = key;
    last_slab_ = *slab;
    return *slab;
  }
  std::uint32_t FindOrAddSlab(std::uint64_t key);
  void FreeIfEmpty(std::uint32_t slab, std::uint64_t key);
  // Narrows `alive_` to the targets that hold the block, noting those that drop out after `blocks`
  // blocks. False when none is left.
  bool Narrow(const std::uint64_t* row, std::uint32_t blocks, std::vector<PrefixMatch>& out);
  bool AllHold(std::uint32_t slab, std::uint32_t from, std::uint32_t count) const;
  void NoteAlive(std::uint32_t blocks, std::vector<PrefixMatch>& out) const;

  std::size_t words_;  // of one row
  std::uint32_t targets_;
  FlatMap<std::uint64_t, std::uint32_t> slab_of_;
  std::vector<std::uint64_t> bits_;  // by slab, position, word
  std::vector<std::uint32_t> used_;  // bits set, by slab
  std::vector<std::uint32_t> free_;
  std::vector<std::uint64_t> alive_;  // during a match
  // The slab that was looked up last: runs of names share it.
  mutable std::uint64_t last_key_ = ~0ULL;
  mutable std::uint32_t last_slab_ = kNoSlab;
};

}  // namespace dynosim::router
