// SPDX-License-Identifier: Apache-2.0
#include "sim/gap_ledger.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/long_sequence.h"
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
      const double gap_ms = log.EndMs(span.first) - log.EndMs(track.spans[i - 1].last);
      if (gap_ms > 0.0) {
        wide_.Append({gap_ms, 1});
      } else {
        ++zero_gaps_;
      }
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
  GapSample* const last = samples_.Last();
  if (last != nullptr && last->gap_ms == gap_ms && last->weight + weight <= kMost) {
    last->weight += static_cast<std::uint32_t>(weight);
  } else {
    samples_.Append({gap_ms, static_cast<std::uint32_t>(weight)});
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

void GapLedger::MoveTo(std::vector<GapSample>& gaps) {
  for (LongSequence<GapSample>* const part : {&samples_, &wide_}) {
    part->ForEachPiece([&](std::span<const GapSample> piece) {
      gaps.insert(gaps.end(), piece.begin(), piece.end());
    });
    part->Clear();
  }
}

void GapLedger::MoveTo(std::vector<LongSequence<GapSample>>& parts) {
  parts.push_back(std::exchange(samples_, LongSequence<GapSample>()));
  parts.push_back(std::exchange(wide_, LongSequence<GapSample>()));
}

}  // namespace dynosim::sim
