// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/check.h"

namespace dynosim {
namespace {

// Word w of four consecutive cipher blocks. The compiler maps it to one SSE2 register.
using Lanes = std::uint32_t __attribute__((vector_size(16)));

Lanes Splat(std::uint32_t v) { return Lanes{v, v, v, v}; }

template <int kBits>
Lanes Rotate(Lanes v) {
  return (v << kBits) | (v >> (32 - kBits));
}

inline void QuarterRound(Lanes& a, Lanes& b, Lanes& c, Lanes& d) {
  a += b;
  d = Rotate<16>(d ^ a);
  c += d;
  b = Rotate<12>(b ^ c);
  a += b;
  d = Rotate<8>(d ^ a);
  c += d;
  b = Rotate<7>(b ^ c);
}

}  // namespace

Probability::Probability(double p) : certain_(p == 1.0) {
  DYNO_CHECK(p >= 0.0 && p <= 1.0);
  if (!certain_) {
    threshold_ = static_cast<std::uint64_t>(p * 0x1p64);
  }
}

ChaCha12::ChaCha12(std::uint64_t seed) {
  std::uint64_t state = seed;
  for (std::uint32_t& word : key_) {
    state = state * 6364136223846793005U + 11634580027462260723U;
    const auto mixed = static_cast<std::uint32_t>(((state >> 18) ^ state) >> 27);
    word = std::rotr(mixed, static_cast<int>(state >> 59));
  }
}

void ChaCha12::Refill() {
  std::array<Lanes, 16> start = {Splat(0x61707865), Splat(0x3320646e), Splat(0x79622d32),
                                 Splat(0x6b206574)};
  for (std::size_t i = 0; i < key_.size(); ++i) {
    start[4 + i] = Splat(key_[i]);
  }
  for (std::uint32_t lane = 0; lane < kBlocks; ++lane) {
    const std::uint64_t block = counter_ + lane;
    start[12][lane] = static_cast<std::uint32_t>(block);
    start[13][lane] = static_cast<std::uint32_t>(block >> 32);
  }
  std::array<Lanes, 16> x = start;
  for (int double_round = 0; double_round < 6; ++double_round) {
    QuarterRound(x[0], x[4], x[8], x[12]);
    QuarterRound(x[1], x[5], x[9], x[13]);
    QuarterRound(x[2], x[6], x[10], x[14]);
    QuarterRound(x[3], x[7], x[11], x[15]);
    QuarterRound(x[0], x[5], x[10], x[15]);
    QuarterRound(x[1], x[6], x[11], x[12]);
    QuarterRound(x[2], x[7], x[8], x[13]);
    QuarterRound(x[3], x[4], x[9], x[14]);
  }
  for (std::size_t w = 0; w < x.size(); ++w) {
    const Lanes sum = x[w] + start[w];
    for (std::size_t lane = 0; lane < kBlocks; ++lane) {
      words_[lane * 16 + w] = sum[lane];
    }
  }
  counter_ += kBlocks;
  next_ = 0;
}

std::uint32_t ChaCha12::NextBelow(std::uint32_t n) {
  DYNO_DCHECK(n > 0);
  const std::uint64_t product = static_cast<std::uint64_t>(NextU32()) * n;
  auto result = static_cast<std::uint32_t>(product >> 32);
  const auto low = static_cast<std::uint32_t>(product);
  if (low > 0U - n) {
    const auto high = static_cast<std::uint32_t>((static_cast<std::uint64_t>(NextU32()) * n) >> 32);
    if (high > std::numeric_limits<std::uint32_t>::max() - low) {
      ++result;
    }
  }
  return result;
}

double ChaCha12::NextExponential(double mean) {
  const double u = std::clamp(1.0 - NextUniform(), std::numeric_limits<double>::min(), 1.0);
  return -mean * std::log(u);
}

}  // namespace dynosim
