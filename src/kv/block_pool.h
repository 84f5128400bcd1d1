// SPDX-License-Identifier: Apache-2.0
// BlockPool: the physical KV blocks of one rank (vLLM and TensorRT-LLM shapes, chapter 10, section
// 5).
//
// A block is free, private (owned by one request, no name), reserved (promised to a handoff) or
// cached (named, shared by reference count). Cached blocks without references wait in an LRU list
// and are evicted from its head. A name may have several physical copies; the first is the primary
// one, the only one that prefix hits use. Invariant: free + private + reserved + cached = capacity.
//
// Names are indexed by slabs of eight consecutive offsets of one group, so a prompt costs one hash
// probe per eight blocks.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "kv/events.h"
#include "kv/sequence_blocks.h"

namespace dynosim::kv {

// Receives what becomes visible or disappears; a null sink switches events off.
class EventSink {
 public:
  EventSink() = default;
  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;
  virtual ~EventSink() = default;
  virtual void OnStored(std::uint32_t request, std::uint32_t first_block,
                        const std::vector<BlockName>& blocks) = 0;
  virtual void OnRemoved(const std::vector<BlockName>& blocks) = 0;
};

// The blocks of one request: the leading `cached.size()` ones are cached copies, the rest private.
struct BlockTable {
  std::vector<std::uint32_t> cached;
  std::uint64_t blocks = 0;
};

class BlockPool {
 public:
  explicit BlockPool(std::uint64_t capacity) : capacity_(capacity), free_(capacity) {}

  void set_sink(EventSink* sink) { sink_ = sink; }

  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t free() const { return free_; }
  std::uint64_t inactive() const { return inactive_; }
  std::uint64_t reserved() const { return reserved_; }
  // Blocks in use: everything that is neither free nor evictable. Shared blocks count once.
  std::uint64_t active() const { return capacity_ - free_ - inactive_; }
  // Physical copies beyond the first of their name.
  std::uint64_t duplicates() const { return duplicates_; }

  struct Overlap {
    std::uint64_t blocks = 0;  // leading blocks whose name is resident
    std::uint64_t active = 0;  // of these, how many have a referenced primary copy
  };
  // Longest resident prefix of the first `limit` blocks. Changes nothing.
  Overlap Match(SequenceBlocks& names, std::uint64_t limit) const;

  // Grows `table` to `target` blocks. The first `reuse` blocks take the primary copies of their
  // names (only for an empty table), the rest are private. Evicts from the LRU head when the free
  // blocks do not suffice. Returns false and changes nothing when even that is too little.
  bool Allocate(BlockTable& table, SequenceBlocks& names, std::uint64_t target,
                std::uint64_t reuse);

  // Gives `table` one more private block; the caller knows that free() + inactive() > 0.
  void AllocateOne(BlockTable& table) {
    if (free_ > 0) {
      --free_;
    } else {
      EvictOne();
    }
    ++table.blocks;
  }
  // Ends a group of AllocateOne calls: reports what they evicted, in eviction order.
  void FlushEvictions() {
    if (sink_ != nullptr && !evicted_.empty()) {
      ReportEvictions();
    }
  }

  // Sets `count` blocks aside without a table, evicting where needed; false and no change if the
  // pool cannot. ReturnUnnamed gives them back.
  bool TakeUnnamed(std::uint64_t count);
  void ReturnUnnamed(std::uint64_t count) { free_ += count; }

  // Names the private blocks [table.cached.size(), to) of the table: they become cached copies with
  // one reference. `request` is for events only.
  void Publish(BlockTable& table, SequenceBlocks& names, std::uint64_t to, std::uint32_t request);

  // Gives all blocks of the table back, last block first, and empties it.
  void Release(BlockTable& table);

  // Handoff destination (section 5.6): pins the resident part of the first `full` blocks and
  // reserves the rest of `total` blocks without names. False and no change when there is not enough
  // space.
  bool Reserve(BlockTable& table, SequenceBlocks& names, std::uint64_t full, std::uint64_t total);
  // Turns the reservation of `table` into private blocks.
  void CommitReservation(BlockTable& table, std::uint64_t total);
  // Gives a reservation back, pins included.
  void CancelReservation(BlockTable& table, std::uint64_t total);

  // Appends the groups of all names in the pool, with repetitions.
  void AppendGroups(std::vector<std::uint32_t>& groups) const;

  // Walks all structures and aborts on any inconsistency; for tests.
  void CheckInvariants() const;

 private:
  static constexpr std::uint32_t kNil = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kSlabBits = 3;
  static constexpr std::uint32_t kSlabSize = 1U << kSlabBits;

  struct Copy {
    std::uint32_t prev = kNil;  // LRU links while unreferenced; `next` also links free records
    std::uint32_t next = kNil;
    std::uint32_t refs = 0;
    std::uint32_t slot = 0;          // slab * kSlabSize + position
    std::uint32_t next_copy = kNil;  // next copy of the same name
  };
  struct Slab {
    std::uint64_t key = 0;
    std::uint32_t used = 0;  // positions with a copy
    std::uint32_t next_free = kNil;
    std::array<std::uint32_t, kSlabSize> copies{};  // primary copies
  };

  static std::uint64_t SlabKey(std::uint32_t group, std::uint32_t offset) {
    return (static_cast<std::uint64_t>(group) << (32 - kSlabBits)) | (offset >> kSlabBits);
  }
  std::uint32_t Home(std::uint64_t key) const {
    return static_cast<std::uint32_t>((key * 0x9E3779B97F4A7C15ULL) >> hash_shift_);
  }
  std::uint32_t FindSlab(std::uint64_t key) const;
  std::uint32_t FindOrAddSlab(std::uint64_t key);
  void EraseSlab(std::uint32_t slab);
  void GrowIndex();
  std::uint32_t NewCopy();
  void LruAppend(std::uint32_t copy);
  void LruRemove(std::uint32_t copy);
  void Pin(std::uint32_t copy);
  void Unpin(std::uint32_t copy);
  void EvictOne();
  void EvictMany(std::uint64_t count);
  void ReportEvictions();
  // Appends the primary copies of blocks [0, count) to table.cached; returns how many are inactive.
  std::uint64_t CollectPrimaries(BlockTable& table, SequenceBlocks& names,
                                 std::uint64_t count) const;
  bool TakeBlocks(BlockTable& table, SequenceBlocks& names, std::uint64_t fresh,
                  std::uint64_t reuse);
  BlockName NameOf(std::uint32_t slot) const;

  std::uint64_t capacity_;
  std::uint64_t free_;
  std::uint64_t inactive_ = 0;
  std::uint64_t reserved_ = 0;
  std::uint64_t cached_ = 0;
  std::uint64_t duplicates_ = 0;
  std::uint32_t lru_head_ = kNil;
  std::uint32_t lru_tail_ = kNil;
  std::vector<Copy> copies_;
  std::uint32_t free_copy_ = kNil;
  std::vector<Slab> slabs_;
  std::uint32_t free_slab_ = kNil;
  std::uint64_t used_slabs_ = 0;
  std::vector<std::uint32_t> index_;  // open addressing: slab number + 1, 0 for empty
  std::uint32_t hash_shift_ = 63;
  EventSink* sink_ = nullptr;
  std::vector<BlockName> evicted_;
  std::vector<BlockName> stored_;
};

}  // namespace dynosim::kv
