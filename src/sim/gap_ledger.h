// SPDX-License-Identifier: Apache-2.0
// GapLedger: how many completed requests saw each gap between consecutive passes of one worker. A
// request that got tokens in passes first..last adds one to the gaps first+1..last; the ledger
// keeps the differences at the ends only, and sums them when the passes are settled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/long_sequence.h"
#include "base/scratch_file.h"
#include "engine/effects.h"
#include "engine/pass_log.h"
#include "sim/outcome.h"

namespace dynosim::sim {

class GapLedger {
 public:
  // Samples lie in `scratch` if there is one.
  explicit GapLedger(ScratchFile* scratch = nullptr) : samples_(scratch), wide_(scratch) {}

  // Counts a completed request. `log` holds its passes.
  void Add(const engine::TokenTrack& track, const engine::PassLog& log);

  // Turns the passes before `pass` into samples and drops them from the log.
  void Settle(std::uint64_t pass, engine::PassLog& log);

  std::size_t size() const { return samples_.size() + wide_.size(); }
  std::uint64_t zero_gaps() const { return zero_gaps_; }

  // Appends the samples: pass by pass, then the gaps that span several passes. Frees them here.
  void MoveTo(std::vector<GapSample>& gaps);
  // The same for samples that may lie in the scratch file.
  void MoveTo(std::vector<LongSequence<GapSample>>& parts);

 private:
  void Push(double gap_ms, std::uint64_t weight);

  std::uint64_t first_ = 1;                // pass of differences_[0]
  std::vector<std::int32_t> differences_;  // change of the weight of the gap that ends in this pass
  std::int64_t weight_ = 0;                // weight of the gap that ends in pass first_ - 1
  LongSequence<GapSample> samples_;
  LongSequence<GapSample> wide_;
  std::uint64_t zero_gaps_ = 0;
};

}  // namespace dynosim::sim
