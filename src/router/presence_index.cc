// SPDX-License-Identifier: Apache-2.0
#include "router/presence_index.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kv/events.h"
#include "workload/request.h"

namespace dynosim::router {

PresenceIndex::PresenceIndex(std::uint32_t targets)
    : words_((std::size_t{targets} + 63) / 64), targets_(targets), alive_(words_), only_(words_) {}

void PresenceIndex::GiveRows(Slab& slab) {
  const std::uint32_t target = slab.where;
  if (free_rows_.empty()) {
    slab.where = static_cast<std::uint32_t>(rows_.size() / (kSlabSize * words_));
    rows_.resize(rows_.size() + kSlabSize * words_, 0);
  } else {
    slab.where = free_rows_.back();
    free_rows_.pop_back();
  }
  slab.has_rows = true;
  for (std::uint32_t i = 0; i < kSlabSize; ++i) {
    Row(slab, i)[target / 64] |= std::uint64_t{(slab.held >> i) & 1U} << (target % 64);
  }
}

bool PresenceIndex::Empty(const Slab& slab) const {
  if (!slab.has_rows) {
    return slab.held == 0;
  }
  const std::uint64_t* first = Row(slab, 0);
  return std::all_of(first, first + kSlabSize * words_,
                     [](std::uint64_t word) { return word == 0; });
}

void PresenceIndex::EraseIfEmpty(const Slab& slab, std::uint64_t key) {
  if (!Empty(slab)) {
    return;
  }
  if (slab.has_rows) {
    free_rows_.push_back(slab.where);
  }
  slabs_.Erase(key);
  last_key_ = ~0ULL;
}

bool PresenceIndex::Add(std::uint32_t target, kv::BlockName name) {
  return Set(FindOrAdd(KeyOf(name), target), PositionOf(name), target);
}

bool PresenceIndex::Remove(std::uint32_t target, kv::BlockName name) {
  Slab* slab = Find(KeyOf(name));
  if (slab == nullptr || !Has(*slab, PositionOf(name), target)) {
    return false;
  }
  Clear(*slab, PositionOf(name), target);
  EraseIfEmpty(*slab, KeyOf(name));
  return true;
}

bool PresenceIndex::Holds(std::uint32_t target, kv::BlockName name) {
  const Slab* slab = Find(KeyOf(name));
  return slab != nullptr && Has(*slab, PositionOf(name), target);
}

bool PresenceIndex::AllHold(const Slab& slab, std::uint32_t from, std::uint32_t count) const {
  for (std::size_t w = 0; w < words_; ++w) {
    std::uint64_t all = alive_[w];
    for (std::uint32_t i = from; i < from + count; ++i) {
      all &= Row(slab, i)[w];
    }
    if (all != alive_[w]) {
      return false;
    }
  }
  return true;
}

bool PresenceIndex::Narrow(const std::uint64_t* row, std::uint32_t blocks,
                           std::vector<PrefixMatch>& out) {
  std::uint64_t any = 0;
  for (std::size_t w = 0; w < words_; ++w) {
    if (blocks > 0) {
      for (std::uint64_t gone = alive_[w] & ~row[w]; gone != 0; gone &= gone - 1) {
        out.push_back({static_cast<std::uint32_t>(w * 64) +
                           static_cast<std::uint32_t>(std::countr_zero(gone)),
                       blocks});
      }
    }
    alive_[w] &= row[w];
    any |= alive_[w];
  }
  return any != 0;
}

void PresenceIndex::NoteAlive(std::uint32_t blocks, std::vector<PrefixMatch>& out) const {
  for (std::size_t w = 0; w < words_ && blocks > 0; ++w) {
    for (std::uint64_t bits = alive_[w]; bits != 0; bits &= bits - 1) {
      out.push_back(
          {static_cast<std::uint32_t>(w * 64) + static_cast<std::uint32_t>(std::countr_zero(bits)),
           blocks});
    }
  }
}

void PresenceIndex::Match(std::span<const workload::BlockExtent> extents, std::uint64_t limit,
                          std::vector<PrefixMatch>& out) {
  out.clear();
  std::ranges::fill(alive_, ~0ULL);
  if (targets_ % 64 != 0) {
    alive_.back() = (1ULL << (targets_ % 64)) - 1;
  }
  constexpr std::uint32_t kMany = ~0U;
  std::uint32_t alone = kMany;  // the target that is left
  std::uint32_t blocks = 0;
  ForEachChunk(extents, limit, [&](std::uint64_t key, std::uint32_t from, std::uint32_t count) {
    const Slab* slab = Find(key);
    if (slab == nullptr) {
      return false;
    }
    if (alone == kMany && !slab->has_rows) {
      alone = slab->where;
      only_[alone / 64] = 1ULL << (alone % 64);
      const bool any = ((slab->held >> from) & 1U) != 0 && Narrow(only_.data(), blocks, out);
      only_[alone / 64] = 0;
      if (!any) {
        return false;
      }
    }
    if (alone == kMany && AllHold(*slab, from, count)) {
      blocks += count;
      return true;
    }
    for (std::uint32_t i = from; i < from + count; ++i, ++blocks) {
      if (!(alone == kMany ? Narrow(Row(*slab, i), blocks, out) : Has(*slab, i, alone))) {
        return false;
      }
    }
    return true;
  });
  NoteAlive(blocks, out);
}

}  // namespace dynosim::router
