// SPDX-License-Identifier: Apache-2.0
// ApproximateCache: a guess of what caches hold, for a router that gets no KV events (chapter 70,
// section 11). A placement is taken as if it stored the prompt on its target; blocks go by age, or
// as an LRU cache of the target's size would lose them. Times are milliseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "kv/events.h"
#include "router/presence_index.h"
#include "workload/request.h"

namespace dynosim::router {

// Blocks stay until `ttl_ms` after their last placement. Beyond `max_blocks`, those with the least
// time left go until a fifth is free.
struct TtlRule {
  double ttl_ms = 120'000.0;
  std::size_t max_blocks = std::size_t{1} << 20U;
};

class TtlCache {
 public:
  TtlCache(PresenceIndex& index, const TtlRule& rule) : index_(index), rule_(rule) {}

  // The first `blocks` blocks of a sequence are on the target from now on.
  void OnPlaced(std::uint32_t target, std::span<const workload::BlockExtent> extents,
                std::uint64_t blocks, double now_ms);
  // Forgets what is too old at `now_ms`; times never fall.
  void Expire(double now_ms);
  std::size_t blocks() const { return expiry_ms_.size(); }
  // Appends the groups of all names, with repetitions.
  void AppendHeldGroups(std::vector<std::uint32_t>& groups) const {
    for (const auto& [expiry_ms, copy] : order_) {
      groups.push_back(PresenceIndex::GroupOf(copy.second));
    }
  }

 private:
  using Copy = std::pair<std::uint32_t, kv::BlockName>;  // on a target
  void DropFront();

  PresenceIndex& index_;
  TtlRule rule_;
  FlatMap<Copy, double> expiry_ms_;
  std::deque<std::pair<double, Copy>>
      order_;  // by expiry; an entry whose copy was renewed is stale
};

// Each target holds at most `capacity` blocks. Blocks of placed requests stay; of the others those
// go first whose last request left longest ago, the deepest of its blocks before the others.
class LruCache {
 public:
  LruCache(PresenceIndex& index, std::uint32_t targets, std::size_t capacity)
      : index_(index), capacity_(capacity), targets_(targets) {}

  void OnPlaced(std::uint32_t target, std::span<const workload::BlockExtent> extents,
                std::uint64_t blocks);
  // A request that was placed with the same arguments has left.
  void OnReleased(std::uint32_t target, std::span<const workload::BlockExtent> extents,
                  std::uint64_t blocks);
  std::size_t blocks(std::uint32_t target) const { return targets_[target].resident.size(); }
  // Appends the groups of all names that no placed request holds, with repetitions.
  void AppendHeldGroups(std::vector<std::uint32_t>& groups) const {
    for (const Target& target : targets_) {
      for (const Idle& idle : target.idle) {
        groups.push_back(PresenceIndex::GroupOf(std::get<2>(idle)));
      }
    }
  }

 private:
  struct Resident {
    std::uint32_t requests = 0;  // that hold it
    std::uint64_t released = 0;  // when the last of them left
    std::uint64_t position = 0;
  };
  // Order of eviction: release, then deepest first.
  using Idle = std::tuple<std::uint64_t, std::int64_t, kv::BlockName>;
  struct Target {
    FlatMap<kv::BlockName, Resident> resident;
    std::set<Idle> idle;
  };
  static Idle IdleOf(kv::BlockName name, const Resident& resident) {
    return {resident.released, -static_cast<std::int64_t>(resident.position), name};
  }
  void Shrink(std::uint32_t target);

  PresenceIndex& index_;
  std::size_t capacity_;
  std::vector<Target> targets_;
  std::uint64_t releases_ = 0;
};

}  // namespace dynosim::router
