// SPDX-License-Identifier: Apache-2.0
// KvBytes: bytes of KV cache that a sequence takes on one GPU, as a function of its length.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "timing/op_level/pass_model.h"

namespace dynosim::timing {

class KvBytes {
 public:
  // Layers of one kind: bytes per token up to `window` tokens (0: all), one more entry per
  // `stride` tokens.
  struct Layers {
    double bytes = 0.0;        // of one entry of all these layers
    std::uint64_t window = 0;  // 0: every token counts
    std::uint64_t stride = 1;  // tokens per entry
  };

  void Add(const Layers& layers) { layers_.push_back(layers); }
  // A state that a sequence has whatever its length, charged once.
  void AddFixed(double bytes) { fixed_ += bytes; }

  double OfSequence(std::uint64_t tokens) const;
  // The most tokens whose bytes fit.
  std::uint64_t TokensWithin(double budget) const;
  // The most tokens, in any number of sequences, that fit beside the full windows and fixed states
  // of `sequences` ones.
  std::uint64_t TokensBesideWindows(double budget, std::uint64_t sequences) const;

 private:
  std::vector<Layers> layers_;
  double fixed_ = 0.0;
};

Result<KvBytes> FindKvBytes(const PassModel& model);

}  // namespace dynosim::timing
