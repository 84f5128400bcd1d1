// SPDX-License-Identifier: Apache-2.0
// PrefillWork: the prompt tokens that the requests of one target have yet to compute, when it is
// predicted how long each one takes (chapter 70, section 4.3). Requests are taken to be computed
// one after the other in the order of their placement: the oldest is the one that is computed,
// since it became the oldest.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace dynosim::router {

class PrefillWork {
 public:
  using Ticket = std::uint64_t;

  // A request with tokens to compute; nothing for a duration that could not be predicted.
  Ticket Add(std::uint64_t tokens, std::optional<std::uint64_t> duration_ns, std::uint64_t now_ns);
  // The request has been computed or has left.
  void Drop(Ticket ticket, std::uint64_t now_ns);

  // What is left: of all requests together when all are predicted, so that the oldest may be late
  // and the next one counts down for it; else the oldest one counts down alone.
  std::uint64_t Tokens(std::uint64_t now_ns) const;

 private:
  struct Entry {
    Ticket ticket = 0;
    std::uint64_t tokens = 0;
    std::optional<std::uint64_t> duration_ns;
  };

  std::deque<Entry> entries_;  // oldest first
  std::uint64_t sum_ = 0;
  std::uint64_t unpredicted_ = 0;  // entries without a duration
  std::uint64_t oldest_since_ns_ = 0;
  Ticket next_ = 0;
};

}  // namespace dynosim::router
