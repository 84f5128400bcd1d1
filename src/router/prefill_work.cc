// SPDX-License-Identifier: Apache-2.0
#include "router/prefill_work.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "base/check.h"

namespace dynosim::router {
namespace {

// floor(tokens * elapsed / duration), which may be more than the tokens.
std::uint64_t Computed(std::uint64_t tokens, std::uint64_t elapsed_ns, std::uint64_t duration_ns,
                       std::uint64_t most) {
  __extension__ using Wide = unsigned __int128;
  const Wide computed = Wide{tokens} * elapsed_ns / duration_ns;
  return computed < most ? static_cast<std::uint64_t>(computed) : most;
}

}  // namespace

PrefillWork::Ticket PrefillWork::Add(std::uint64_t tokens, std::optional<std::uint64_t> duration_ns,
                                     std::uint64_t now_ns) {
  if (entries_.empty()) {
    oldest_since_ns_ = now_ns;
  }
  entries_.push_back({.ticket = next_, .tokens = tokens, .duration_ns = duration_ns});
  sum_ += tokens;
  unpredicted_ += duration_ns ? 0 : 1;
  return next_++;
}

void PrefillWork::Drop(Ticket ticket, std::uint64_t now_ns) {
  const auto entry = std::ranges::lower_bound(entries_, ticket, {}, &Entry::ticket);
  DYNO_CHECK(entry != entries_.end() && entry->ticket == ticket);
  sum_ -= entry->tokens;
  unpredicted_ -= entry->duration_ns ? 0 : 1;
  if (entry == entries_.begin()) {
    oldest_since_ns_ = now_ns;
  }
  entries_.erase(entry);
}

std::uint64_t PrefillWork::Tokens(std::uint64_t now_ns) const {
  if (entries_.empty() || !entries_.front().duration_ns) {
    return sum_;
  }
  const Entry& oldest = entries_.front();
  const std::uint64_t elapsed = now_ns - std::min(now_ns, oldest_since_ns_);
  const std::uint64_t duration = *oldest.duration_ns;
  if (unpredicted_ == 0) {
    return sum_ -
           (duration == 0 ? oldest.tokens : Computed(oldest.tokens, elapsed, duration, sum_));
  }
  const double left =
      duration == 0 ? 0.0
                    : std::clamp(1.0 - static_cast<double>(elapsed) / static_cast<double>(duration),
                                 0.0, 1.0);
  return sum_ - oldest.tokens +
         static_cast<std::uint64_t>(std::ceil(static_cast<double>(oldest.tokens) * left));
}

}  // namespace dynosim::router
