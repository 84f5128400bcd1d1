// SPDX-License-Identifier: Apache-2.0
#include "router/approximate_cache.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>

#include "kv/events.h"
#include "workload/request.h"

namespace dynosim::router {

namespace {

// Calls f(name, position) for the first `limit` blocks of a sequence.
template <class F>
void ForEachBlock(std::span<const workload::BlockExtent> extents, std::uint64_t limit, const F& f) {
  std::uint64_t position = 0;
  for (const workload::BlockExtent& extent : extents) {
    const std::uint64_t count = std::min<std::uint64_t>(extent.count, limit - position);
    const kv::BlockName first = (kv::BlockName{extent.group} << 32U) | extent.first;
    for (std::uint64_t i = 0; i < count; ++i) {
      f(first + i, position++);
    }
  }
}

}  // namespace

void TtlCache::OnPlaced(std::uint32_t target, std::span<const workload::BlockExtent> extents,
                        std::uint64_t blocks, double now_ms) {
  const double expiry_ms = now_ms + rule_.ttl_ms;
  ForEachBlock(extents, blocks, [&](kv::BlockName name, std::uint64_t) {
    const Copy copy{target, name};
    const auto [expiry, is_new] = expiry_ms_.TryInsert(copy, expiry_ms);
    if (is_new) {
      index_.Add(target, name);
    } else if (*expiry == expiry_ms) {
      return;
    }
    *expiry = expiry_ms;
    order_.emplace_back(expiry_ms, copy);
  });
  if (expiry_ms_.size() > rule_.max_blocks) {
    while (expiry_ms_.size() > rule_.max_blocks / 5 * 4) {
      DropFront();
    }
  }
}

void TtlCache::Expire(double now_ms) {
  while (!order_.empty() && order_.front().first <= now_ms) {
    DropFront();
  }
}

void TtlCache::DropFront() {
  const auto [expiry_ms, copy] = order_.front();
  order_.pop_front();
  const double* current_ms = expiry_ms_.Find(copy);
  if (current_ms != nullptr && *current_ms == expiry_ms) {
    expiry_ms_.Erase(copy);
    index_.Remove(copy.first, copy.second);
  }
}

void LruCache::OnPlaced(std::uint32_t target, std::span<const workload::BlockExtent> extents,
                        std::uint64_t blocks) {
  Target& t = targets_[target];
  ForEachBlock(extents, blocks, [&](kv::BlockName name, std::uint64_t position) {
    const auto [resident, is_new] = t.resident.TryInsert(name);
    if (is_new) {
      resident->position = position;
      index_.Add(target, name);
    } else if (resident->requests == 0) {
      t.idle.erase(IdleOf(name, *resident));
    }
    ++resident->requests;
  });
  Shrink(target);
}

void LruCache::Shrink(std::uint32_t target) {
  Target& t = targets_[target];
  while (t.resident.size() > capacity_ && !t.idle.empty()) {
    const kv::BlockName name = std::get<2>(*t.idle.begin());
    t.idle.erase(t.idle.begin());
    t.resident.Erase(name);
    index_.Remove(target, name);
  }
}

void LruCache::OnReleased(std::uint32_t target, std::span<const workload::BlockExtent> extents,
                          std::uint64_t blocks) {
  Target& t = targets_[target];
  ++releases_;
  ForEachBlock(extents, blocks, [&](kv::BlockName name, std::uint64_t) {
    Resident* resident = t.resident.Find(name);
    if (resident != nullptr && --resident->requests == 0) {
      resident->released = releases_;
      t.idle.insert(IdleOf(name, *resident));
    }
  });
  Shrink(target);
}

}  // namespace dynosim::router
