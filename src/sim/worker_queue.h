// SPDX-License-Identifier: Apache-2.0
// WorkerQueue: one pending time per worker, earliest first, ties by worker number. A binary heap
// that knows where each worker stands, so that a time can be changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace dynosim::sim {

class WorkerQueue {
 public:
  bool empty() const { return heap_.empty(); }
  double TopMs() const { return heap_.front().at_ms; }
  std::uint32_t TopWorker() const { return heap_.front().worker; }

  // Inserts a worker or changes its time.
  void Set(std::uint32_t worker, double at_ms) {
    if (worker >= place_.size()) {
      place_.resize(worker + 1, kAbsent);
    }
    if (place_[worker] == kAbsent) {
      place_[worker] = heap_.size();
      heap_.push_back({at_ms, worker});
    } else {
      heap_[place_[worker]].at_ms = at_ms;
    }
    Down(Up(place_[worker]));
  }

  void Pop() { Remove(TopWorker()); }

  void Remove(std::uint32_t worker) {
    if (worker >= place_.size() || place_[worker] == kAbsent) {
      return;
    }
    const std::size_t at = place_[worker];
    Swap(at, heap_.size() - 1);
    heap_.pop_back();
    place_[worker] = kAbsent;
    if (at < heap_.size()) {
      Down(Up(at));
    }
  }

 private:
  struct Entry {
    double at_ms;
    std::uint32_t worker;
  };
  static constexpr std::size_t kAbsent = std::numeric_limits<std::size_t>::max();

  bool Before(std::size_t a, std::size_t b) const {
    return heap_[a].at_ms != heap_[b].at_ms ? heap_[a].at_ms < heap_[b].at_ms
                                            : heap_[a].worker < heap_[b].worker;
  }
  void Swap(std::size_t a, std::size_t b) {
    std::swap(heap_[a], heap_[b]);
    place_[heap_[a].worker] = a;
    place_[heap_[b].worker] = b;
  }
  std::size_t Up(std::size_t i) {
    while (i > 0 && Before(i, (i - 1) / 2)) {
      Swap(i, (i - 1) / 2);
      i = (i - 1) / 2;
    }
    return i;
  }
  void Down(std::size_t i) {
    while (true) {
      std::size_t least = i;
      for (const std::size_t child : {2 * i + 1, 2 * i + 2}) {
        if (child < heap_.size() && Before(child, least)) {
          least = child;
        }
      }
      if (least == i) {
        return;
      }
      Swap(i, least);
      i = least;
    }
  }

  std::vector<Entry> heap_;
  std::vector<std::size_t> place_;
};

}  // namespace dynosim::sim
