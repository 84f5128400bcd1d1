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
    : words_((std::size_t{targets} + 63) / 64), targets_(targets), alive_(words_) {}

std::uint32_t PresenceIndex::FindOrAddSlab(std::uint64_t key) {
  if (key == last_key_) {
    return last_slab_;
  }
  const auto [slab, is_new] = slab_of_.TryInsert(key, 0U);
  if (is_new) {
    if (free_.empty()) {
      *slab = static_cast<std::uint32_t>(used_.size());
      used_.push_back(0);
      bits_.resize(bits_.size() + kSlabSize * words_, 0);
    } else {
      *slab = free_.back();
      free_.pop_back();
    }
  }
  last_key_ = key;
  last_slab_ = *slab;
  return *slab;
}

void PresenceIndex::FreeIfEmpty(std::uint32_t slab, std::uint64_t key) {
  if (used_[slab] != 0) {
    return;
  }
  slab_of_.Erase(key);
  free_.push_back(slab);
  last_key_ = ~0ULL;
}

bool PresenceIndex::Add(std::uint32_t target, kv::BlockName name) {
  return SetBit(FindOrAddSlab(KeyOf(name)), static_cast<std::uint32_t>(name % kSlabSize), target);
}

bool PresenceIndex::Remove(std::uint32_t target, kv::BlockName name) {
  const std::uint32_t slab = FindSlab(KeyOf(name));
  if (slab == kNoSlab ||
      !ClearBit(slab, static_cast<std::uint32_t>(name % kSlabSize), target)) {
    return false;
  }
  FreeIfEmpty(slab, KeyOf(name));
  return true;
}

bool PresenceIndex::Holds(std::uint32_t target, kv::BlockName name) const {
  const std::uint32_t slab = FindSlab(KeyOf(name));
  return slab != kNoSlab && (Row(slab, static_cast<std::uint32_t>(name % kSlabSize))[target / 64] >>
                             (target % 64) & 1) != 0;
}

bool PresenceIndex::AllHold(std::uint32_t slab, std::uint32_t from, std::uint32_t count) const {
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
      out.push_back({static_cast<std::uint32_t>(w * 64) +
                         static_cast<std::uint32_t>(std::countr_zero(bits)),
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
  std::uint32_t blocks = 0;
  for (const workload::BlockExtent& extent : extents) {
    std::uint64_t left = std::min<std::uint64_t>(extent.count, limit - blocks);
    kv::BlockName name = (kv::BlockName{extent.group} << 32U) | extent.first;
    while (left > 0) {
      const std::uint32_t slab = FindSlab(KeyOf(name));
      if (slab == kNoSlab) {
        NoteAlive(blocks, out);
        return;
      }
      const auto from = static_cast<std::uint32_t>(name % kSlabSize);
      const auto count =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(left, kSlabSize - from));
      if (AllHold(slab, from, count)) {
        blocks += count;
      } else {
        for (std::uint32_t i = from; i < from + count; ++i, ++blocks) {
          if (!Narrow(Row(slab, i), blocks, out)) {
            return;
          }
        }
      }
      name += count;
      left -= count;
    }
    if (blocks == limit) {
      break;
    }
  }
  NoteAlive(blocks, out);
}

}  // namespace dynosim::router
