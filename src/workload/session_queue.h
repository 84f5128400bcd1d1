// SPDX-License-Identifier: Apache-2.0
// SessionQueue: which turn of which session is ready next. Either every session starts at its own
// time (open loop), or at most `cap` sessions are active, each keeping its slot through all of its
// turns and pauses, and the next one in order starts when a slot is free. One turn per session
// waits here or is in flight. Order: ready time, then session, then turn.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "workload/request.h"

namespace dynosim::workload {

class SessionQueue {
 public:
  struct Turn {
    double ready_ms = 0.0;
    std::uint32_t session = 0;
    std::uint32_t turn = 0;
    friend constexpr auto operator<=>(const Turn&, const Turn&) = default;
  };

  // Session s starts at first_ready_ms[s].
  static SessionQueue OpenLoop(std::vector<double> first_ready_ms);
  // The first `cap` sessions start at 0, each later one when an earlier one has ended.
  static SessionQueue Capped(std::uint32_t sessions, std::uint64_t cap);

  std::optional<double> NextReadyMs() const;
  // Takes the next turn that is ready at `now_ms`.
  std::optional<Turn> Pop(double now_ms);
  // The session's next turn is ready at turn.ready_ms.
  void Push(Turn turn);
  // A session has ended; with a cap, the next one starts.
  void EndSession(double now_ms);

 private:
  SessionQueue() = default;
  // The earliest session that starts by itself and was not popped yet.
  std::optional<Turn> NextStart() const;

  std::vector<double> first_ready_ms_;  // open loop, by session
  std::vector<std::uint32_t> order_;    // by start time; empty when sessions are in order already
  std::uint32_t taken_ = 0;             // sessions popped in that order
  std::uint32_t front_ = 0;             // sessions that start by themselves
  std::uint32_t next_ = 0;              // next session to get a free slot
  std::uint32_t sessions_ = 0;
  std::vector<Turn> heap_;  // later turns, and sessions that got a slot; least first
};

}  // namespace dynosim::workload
