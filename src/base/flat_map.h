// SPDX-License-Identifier: Apache-2.0
// FlatMap: the hash map of the program. A thin wrapper that leaves out iteration on purpose: the
// order of a hash map must never reach a result. To change the map underneath, edit this file.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include <absl/container/flat_hash_map.h>
#include <absl/hash/hash.h>

namespace dynosim {

template <class Key, class Value, class Hash = absl::Hash<Key>, class Equal = std::equal_to<Key>>
class FlatMap {
 public:
  std::size_t size() const { return map_.size(); }
  bool empty() const { return map_.empty(); }
  void Reserve(std::size_t count) { map_.reserve(count); }
  void Clear() { map_.clear(); }

  // Pointer to the value, nullptr when absent. Valid until the next insertion or removal.
  Value* Find(const Key& key) {
    const auto it = map_.find(key);
    return it == map_.end() ? nullptr : &it->second;
  }
  const Value* Find(const Key& key) const {
    const auto it = map_.find(key);
    return it == map_.end() ? nullptr : &it->second;
  }
  bool Contains(const Key& key) const { return map_.find(key) != map_.end(); }

  // Inserts unless the key is there; returns the value in the map and whether it is new.
  template <class... Args>
  std::pair<Value*, bool> TryInsert(const Key& key, Args&&... args) {
    const auto [it, inserted] = map_.try_emplace(key, std::forward<Args>(args)...);
    return {&it->second, inserted};
  }
  Value& operator[](const Key& key) { return map_[key]; }
  bool Erase(const Key& key) { return map_.erase(key) != 0; }

 private:
  absl::flat_hash_map<Key, Value, Hash, Equal> map_;
};

}  // namespace dynosim
