// SPDX-License-Identifier: Apache-2.0
// EventQueue: a binary heap on (time, order): earliest time first, equal times by the given order
// number. Times are finite milliseconds and compared exactly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace dynosim {

template <class Payload>
class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  double TopMs() const { return heap_.front().at_ms; }

  void Push(double at_ms, std::uint64_t order, Payload payload) {
    heap_.push_back({at_ms, order, std::move(payload)});
    std::push_heap(heap_.begin(), heap_.end(), Later);
  }
  Payload PopTop() {
    std::pop_heap(heap_.begin(), heap_.end(), Later);
    Payload payload = std::move(heap_.back().payload);
    heap_.pop_back();
    return payload;
  }

 private:
  struct Entry {
    double at_ms;
    std::uint64_t order;
    Payload payload;
  };
  static bool Later(const Entry& a, const Entry& b) {
    return a.at_ms != b.at_ms ? a.at_ms > b.at_ms : a.order > b.order;
  }
  std::vector<Entry> heap_;
};

}  // namespace dynosim
