// SPDX-License-Identifier: Apache-2.0
// BurstSampler: how many tokens a request gains in one speculative pass (chapter 10, section 8).
// One generator per rank; requests draw in ready order.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"

namespace dynosim::engine {

class BurstSampler {
 public:
  // rates[i]: probability that draft i is accepted given that all before it were.
  BurstSampler(std::uint64_t seed, const std::vector<double>& rates);

  // 1 + number of leading accepted drafts. Every draft up to the first refusal is drawn.
  std::uint64_t Sample() {
    std::uint64_t tokens = 1;
    for (const Probability& rate : rates_) {
      if (!random_.NextBernoulli(rate)) {
        break;
      }
      ++tokens;
    }
    return tokens;
  }

 private:
  ChaCha12 random_;
  std::vector<Probability> rates_;
};

}  // namespace dynosim::engine
