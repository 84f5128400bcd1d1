// SPDX-License-Identifier: Apache-2.0
#include "kv/block_pool.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "kv/events.h"
#include "kv/sequence_blocks.h"

namespace dynosim::kv {

BlockPool::Overlap BlockPool::Match(SequenceBlocks& names, std::uint64_t limit) const {
  Overlap out;
  while (out.blocks < limit) {
    const SequenceBlocks::Run run = names.At(static_cast<std::uint32_t>(out.blocks));
    const std::uint32_t slab = FindSlab(SlabKey(run.group, run.offset));
    if (slab == kNil) {
      return out;
    }
    const std::uint32_t from = run.offset % kSlabSize;
    const std::uint64_t take =
        std::min<std::uint64_t>({run.count, kSlabSize - from, limit - out.blocks});
    for (std::uint64_t i = 0; i < take; ++i) {
      const std::uint32_t copy = slabs_[slab].copies[from + i];
      if (copy == kNil) {
        return out;
      }
      ++out.blocks;
      out.active += copies_[copy].refs > 0 ? 1 : 0;
    }
  }
  return out;
}

std::uint64_t BlockPool::CollectPrimaries(BlockTable& table, SequenceBlocks& names,
                                          std::uint64_t count) const {
  std::uint64_t inactive = 0;
  std::uint64_t block = 0;
  while (block < count) {
    const SequenceBlocks::Run run = names.At(static_cast<std::uint32_t>(block));
    const std::uint32_t slab = FindSlab(SlabKey(run.group, run.offset));
    DYNO_CHECK(slab != kNil);
    const std::uint32_t from = run.offset % kSlabSize;
    const std::uint64_t take =
        std::min<std::uint64_t>({run.count, kSlabSize - from, count - block});
    for (std::uint64_t i = 0; i < take; ++i) {
      const std::uint32_t copy = slabs_[slab].copies[from + i];
      DYNO_CHECK(copy != kNil);
      inactive += copies_[copy].refs == 0 ? 1 : 0;
      table.cached.push_back(copy);
    }
    block += take;
  }
  return inactive;
}

bool BlockPool::TakeBlocks(BlockTable& table, SequenceBlocks& names, std::uint64_t fresh,
                           std::uint64_t reuse) {
  const std::uint64_t inactive_hits = reuse > 0 ? CollectPrimaries(table, names, reuse) : 0;
  const std::uint64_t evict = fresh > free_ ? fresh - free_ : 0;
  if (evict > 0 && evict > inactive_ - inactive_hits) {
    if (reuse > 0) {
      table.cached.clear();
    }
    return false;
  }
  if (reuse > 0) {
    for (const std::uint32_t copy : table.cached) {
      Pin(copy);
    }
  }
  free_ -= fresh - evict;
  if (evict > 0) {
    EvictMany(evict);
  }
  return true;
}

bool BlockPool::Allocate(BlockTable& table, SequenceBlocks& names, std::uint64_t target,
                         std::uint64_t reuse) {
  if (target <= table.blocks) {
    return true;
  }
  DYNO_DCHECK(reuse == 0 || table.blocks == 0);
  if (!TakeBlocks(table, names, target - table.blocks - reuse, reuse)) {
    return false;
  }
  table.blocks = target;
  return true;
}

bool BlockPool::TakeUnnamed(std::uint64_t count) {
  if (count > free_ + inactive_) {
    return false;
  }
  const std::uint64_t evict = count > free_ ? count - free_ : 0;
  free_ -= count - evict;
  if (evict > 0) {
    EvictMany(evict);
  }
  return true;
}

void BlockPool::Publish(BlockTable& table, SequenceBlocks& names, std::uint64_t to,
                        std::uint32_t request) {
  std::uint64_t block = table.cached.size();
  DYNO_DCHECK(to <= table.blocks);
  cached_ += to > block ? to - block : 0;
  std::uint64_t run_start = block;
  while (block < to) {
    const SequenceBlocks::Run run = names.At(static_cast<std::uint32_t>(block));
    const std::uint32_t slab = FindOrAddSlab(SlabKey(run.group, run.offset));
    const std::uint32_t from = run.offset % kSlabSize;
    const std::uint64_t take = std::min<std::uint64_t>({run.count, kSlabSize - from, to - block});
    for (std::uint64_t i = 0; i < take; ++i, ++block) {
      const std::uint32_t copy = NewCopy();
      copies_[copy].refs = 1;
      copies_[copy].slot = slab * kSlabSize + from + static_cast<std::uint32_t>(i);
      table.cached.push_back(copy);
      std::uint32_t& primary = slabs_[slab].copies[from + i];
      if (primary == kNil) {
        primary = copy;
        ++slabs_[slab].used;
        if (sink_ != nullptr) {
          stored_.push_back(NameOf(copies_[copy].slot));
        }
        continue;
      }
      std::uint32_t last = primary;
      while (copies_[last].next_copy != kNil) {
        last = copies_[last].next_copy;
      }
      copies_[last].next_copy = copy;
      ++duplicates_;
      // A block that was visible already splits the run of newly visible ones.
      if (sink_ != nullptr && !stored_.empty()) {
        sink_->OnStored(request, static_cast<std::uint32_t>(run_start), stored_);
        stored_.clear();
      }
      run_start = block + 1;
    }
  }
  if (sink_ != nullptr && !stored_.empty()) {
    sink_->OnStored(request, static_cast<std::uint32_t>(run_start), stored_);
    stored_.clear();
  }
}

void BlockPool::Release(BlockTable& table) {
  free_ += table.blocks - table.cached.size();
  for (std::size_t i = table.cached.size(); i-- > 0;) {
    Unpin(table.cached[i]);
  }
  table.cached.clear();
  table.blocks = 0;
}

bool BlockPool::Reserve(BlockTable& table, SequenceBlocks& names, std::uint64_t full,
                        std::uint64_t total) {
  const std::uint64_t hits = Match(names, full).blocks;
  if (!TakeBlocks(table, names, total - hits, hits)) {
    return false;
  }
  reserved_ += total - hits;
  return true;
}

void BlockPool::CommitReservation(BlockTable& table, std::uint64_t total) {
  reserved_ -= total - table.cached.size();
  table.blocks = total;
}

void BlockPool::CancelReservation(BlockTable& table, std::uint64_t total) {
  CommitReservation(table, total);
  Release(table);
}

std::uint32_t BlockPool::FindSlab(std::uint64_t key) const {
  if (index_.empty()) {
    return kNil;
  }
  const std::size_t mask = index_.size() - 1;
  for (std::size_t i = Home(key);; i = (i + 1) & mask) {
    const std::uint32_t entry = index_[i];
    if (entry == 0) {
      return kNil;
    }
    if (slabs_[entry - 1].key == key) {
      return entry - 1;
    }
  }
}

std::uint32_t BlockPool::FindOrAddSlab(std::uint64_t key) {
  if (const std::uint32_t found = FindSlab(key); found != kNil) {
    return found;
  }
  if (index_.empty() || (used_slabs_ + 1) * 2 > index_.size()) {
    GrowIndex();
  }
  std::uint32_t slab = free_slab_;
  if (slab != kNil) {
    free_slab_ = slabs_[slab].next_free;
  } else {
    slab = static_cast<std::uint32_t>(slabs_.size());
    slabs_.emplace_back();
  }
  slabs_[slab] = {.key = key};
  slabs_[slab].copies.fill(kNil);
  const std::size_t mask = index_.size() - 1;
  std::size_t i = Home(key);
  while (index_[i] != 0) {
    i = (i + 1) & mask;
  }
  index_[i] = slab + 1;
  ++used_slabs_;
  return slab;
}

void BlockPool::GrowIndex() {
  const std::size_t size = std::max<std::size_t>(64, index_.size() * 2);
  std::vector<std::uint32_t> old(size, 0);
  old.swap(index_);
  hash_shift_ = static_cast<std::uint32_t>(64 - std::countr_zero(size));
  const std::size_t mask = size - 1;
  for (const std::uint32_t entry : old) {
    if (entry == 0) {
      continue;
    }
    std::size_t i = Home(slabs_[entry - 1].key);
    while (index_[i] != 0) {
      i = (i + 1) & mask;
    }
    index_[i] = entry;
  }
}

void BlockPool::EraseSlab(std::uint32_t slab) {
  const std::size_t mask = index_.size() - 1;
  std::size_t hole = Home(slabs_[slab].key);
  while (index_[hole] != slab + 1) {
    hole = (hole + 1) & mask;
  }
  // Close the gap: move back every later entry of the probe chain whose home is not beyond the
  // hole.
  for (std::size_t i = (hole + 1) & mask; index_[i] != 0; i = (i + 1) & mask) {
    const std::size_t home = Home(slabs_[index_[i] - 1].key);
    if (((i - home) & mask) >= ((i - hole) & mask)) {
      index_[hole] = index_[i];
      hole = i;
    }
  }
  index_[hole] = 0;
  slabs_[slab].next_free = free_slab_;
  free_slab_ = slab;
  --used_slabs_;
}

std::uint32_t BlockPool::NewCopy() {
  if (free_copy_ == kNil) {
    copies_.emplace_back();
    return static_cast<std::uint32_t>(copies_.size() - 1);
  }
  const std::uint32_t copy = free_copy_;
  free_copy_ = copies_[copy].next;
  copies_[copy] = {};
  return copy;
}

void BlockPool::LruAppend(std::uint32_t copy) {
  Copy& c = copies_[copy];
  c.prev = lru_tail_;
  c.next = kNil;
  (lru_tail_ == kNil ? lru_head_ : copies_[lru_tail_].next) = copy;
  lru_tail_ = copy;
  ++inactive_;
}

void BlockPool::LruRemove(std::uint32_t copy) {
  const Copy& c = copies_[copy];
  (c.prev == kNil ? lru_head_ : copies_[c.prev].next) = c.next;
  (c.next == kNil ? lru_tail_ : copies_[c.next].prev) = c.prev;
  --inactive_;
}

void BlockPool::Pin(std::uint32_t copy) {
  if (copies_[copy].refs++ == 0) {
    LruRemove(copy);
  }
}

void BlockPool::Unpin(std::uint32_t copy) {
  if (--copies_[copy].refs == 0) {
    LruAppend(copy);
  }
}

void BlockPool::EvictOne() {
  const std::uint32_t victim = lru_head_;
  DYNO_CHECK(victim != kNil);
  LruRemove(victim);
  const std::uint32_t slab = copies_[victim].slot / kSlabSize;
  std::uint32_t& primary = slabs_[slab].copies[copies_[victim].slot % kSlabSize];
  if (primary == victim) {
    primary = copies_[victim].next_copy;
    if (primary == kNil) {
      if (sink_ != nullptr) {
        evicted_.push_back(NameOf(copies_[victim].slot));
      }
      if (--slabs_[slab].used == 0) {
        EraseSlab(slab);
      }
    } else {
      --duplicates_;
    }
  } else {
    std::uint32_t before = primary;
    while (copies_[before].next_copy != victim) {
      before = copies_[before].next_copy;
    }
    copies_[before].next_copy = copies_[victim].next_copy;
    --duplicates_;
  }
  copies_[victim].next = free_copy_;
  free_copy_ = victim;
  --cached_;
}

void BlockPool::EvictMany(std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    EvictOne();
  }
  FlushEvictions();
}

void BlockPool::ReportEvictions() {
  sink_->OnRemoved(evicted_);
  evicted_.clear();
}

BlockName BlockPool::NameOf(std::uint32_t slot) const {
  const std::uint64_t key = slabs_[slot / kSlabSize].key;
  const std::uint64_t group = key >> (32 - kSlabBits);
  const std::uint64_t offset = ((key << kSlabBits) & 0xFFFFFFFFULL) | (slot % kSlabSize);
  return (group << 32) | offset;
}

void BlockPool::AppendGroups(std::vector<std::uint32_t>& groups) const {
  for (const Slab& slab : slabs_) {
    if (slab.used > 0) {
      groups.push_back(static_cast<std::uint32_t>(slab.key >> (32 - kSlabBits)));
    }
  }
}

void BlockPool::CheckInvariants() const {
  std::uint64_t listed = 0;
  std::uint32_t prev = kNil;
  for (std::uint32_t c = lru_head_; c != kNil; c = copies_[c].next) {
    DYNO_CHECK(copies_[c].refs == 0);
    DYNO_CHECK(copies_[c].prev == prev);
    prev = c;
    ++listed;
  }
  DYNO_CHECK(prev == lru_tail_);
  DYNO_CHECK(listed == inactive_);
  std::uint64_t indexed = 0;
  std::uint64_t extra = 0;
  std::uint64_t slabs = 0;
  for (const std::uint32_t entry : index_) {
    if (entry == 0) {
      continue;
    }
    ++slabs;
    const Slab& slab = slabs_[entry - 1];
    std::uint32_t used = 0;
    for (std::uint32_t c : slab.copies) {
      used += c != kNil ? 1 : 0;
      for (bool first = true; c != kNil; c = copies_[c].next_copy, first = false) {
        ++indexed;
        extra += first ? 0 : 1;
        DYNO_CHECK(copies_[c].slot / kSlabSize == entry - 1);
      }
    }
    DYNO_CHECK(used == slab.used && used > 0);
    DYNO_CHECK(FindSlab(slab.key) == entry - 1);
  }
  DYNO_CHECK(slabs == used_slabs_);
  DYNO_CHECK(indexed == cached_);
  DYNO_CHECK(extra == duplicates_);
  DYNO_CHECK(free_ + cached_ + reserved_ <= capacity_);
}

}  // namespace dynosim::kv
