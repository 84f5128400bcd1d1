// SPDX-License-Identifier: Apache-2.0
#include "workload/session_queue.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace dynosim::workload {

SessionQueue SessionQueue::OpenLoop(std::vector<double> first_ready_ms) {
  SessionQueue queue;
  queue.first_ready_ms_ = std::move(first_ready_ms);
  const std::vector<double>& times = queue.first_ready_ms_;
  queue.sessions_ = static_cast<std::uint32_t>(times.size());
  queue.front_ = queue.sessions_;
  queue.next_ = queue.sessions_;
  if (!std::is_sorted(times.begin(), times.end())) {
    queue.order_.resize(times.size());
    std::iota(queue.order_.begin(), queue.order_.end(), 0U);
    std::stable_sort(queue.order_.begin(), queue.order_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return times[a] < times[b]; });
  }
  return queue;
}

SessionQueue SessionQueue::Capped(std::uint32_t sessions, std::uint64_t cap) {
  SessionQueue queue;
  queue.sessions_ = sessions;
  queue.front_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(sessions, cap));
  queue.next_ = queue.front_;
  return queue;
}

std::optional<SessionQueue::Turn> SessionQueue::NextStart() const {
  if (taken_ == front_) {
    return std::nullopt;
  }
  const std::uint32_t session = order_.empty() ? taken_ : order_[taken_];
  return Turn{.ready_ms = first_ready_ms_.empty() ? 0.0 : first_ready_ms_[session],
              .session = session};
}

std::optional<double> SessionQueue::NextReadyMs() const {
  const std::optional<Turn> start = NextStart();
  if (heap_.empty()) {
    return start ? std::optional(start->ready_ms) : std::nullopt;
  }
  return start ? std::min(start->ready_ms, heap_.front().ready_ms) : heap_.front().ready_ms;
}

std::optional<SessionQueue::Turn> SessionQueue::Pop(double now_ms) {
  const std::optional<Turn> start = NextStart();
  if (!heap_.empty() && (!start || heap_.front() < *start)) {
    const Turn turn = heap_.front();
    if (turn.ready_ms > now_ms) {
      return std::nullopt;
    }
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    return turn;
  }
  if (!start || start->ready_ms > now_ms) {
    return std::nullopt;
  }
  ++taken_;
  return start;
}

void SessionQueue::Push(Turn turn) {
  heap_.push_back(turn);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

void SessionQueue::EndSession(double now_ms) {
  if (next_ < sessions_) {
    Push({.ready_ms = now_ms, .session = next_++});
  }
}

}  // namespace dynosim::workload
