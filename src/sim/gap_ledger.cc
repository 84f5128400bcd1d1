// SPDX-License-Identifier: Apache-2.0
#include "sim/gap_ledger.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/effects.h"
#include "engine/pass_log.h"
#include "sim/outcome.h"

namespace dynosim::sim {

void GapLedger::Add(const engine::TokenTrack& track, const engine::PassLog& log) {
  if (track.spans.empty()) {
    return;
  }
  const std::uint64_t last = track.spans.back().last;
  if (last + 1 - first_ >= differences_.size()) {
    differences_.resize(std::max<std::size_t>(last + 2 - first_, log.last() + 2 - first_));
  }
  std::uint64_t passes = 0;
  for (std::size_t i = 0; i < track.spans.size(); ++i) {
    const engine::PassSpan& span = track.spans[i];
    ++differences_[span.first + 1 - first_];
    --differences_[span.last + 1 - first_];
    passes += span.last - span.first + 1;
    if (i > 0) {
      wide_.push_back({log.EndMs(span.first) - log.EndMs(track.spans[i - 1].last), 1});
    }
  }
  // Tokens of one burst come at the same time.
  zero_gaps_ += track.tokens - passes;
}

void GapLedger::Push(double gap_ms, std::uint64_t weight) {
  if (gap_ms <= 0.0) {
    zero_gaps_ += weight;
    return;
  }
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  const bool again = !samples_.empty() && samples_.back().gap_ms == gap_ms &&
                     samples_.back().weight + weight <= kMost;
  if (again) {
    samples_.back().weight += static_cast<std::uint32_t>(weight);
  } else {
    samples_.push_back({gap_ms, static_cast<std::uint32_t>(weight)});
  }
}

void GapLedger::Settle(std::uint64_t pass, engine::PassLog& log) {
  pass = std::min(pass, log.last() + 1);
  if (pass <= first_) {
    return;
  }
  const std::size_t known = std::min<std::size_t>(pass - first_, differences_.size());
  for (std::size_t i = 0; i < known; ++i) {
    weight_ += differences_[i];
    if (weight_ > 0) {
      const std::uint64_t p = first_ + i;
      Push(log.EndMs(p) - log.EndMs(p - 1), static_cast<std::uint64_t>(weight_));
    }
  }
  differences_.erase(differences_.begin(),
                     differences_.begin() + static_cast<std::ptrdiff_t>(known));
  first_ = pass;
  // The first gap to come is measured from the pass before.
  log.DropBefore(pass - 1);
}

void GapLedger::MoveTo(std::vector<GapSample>& gaps, std::uint64_t& zero_gaps) {
  gaps.insert(gaps.end(), samples_.begin(), samples_.end());
  std::vector<GapSample>().swap(samples_);
  for (const GapSample& gap : wide_) {
    if (gap.gap_ms > 0.0) {
      gaps.push_back(gap);
    } else {
      ++zero_gaps;
    }
  }
  std::vector<GapSample>().swap(wide_);
  zero_gaps += zero_gaps_;
}

}  // namespace dynosim::sim
