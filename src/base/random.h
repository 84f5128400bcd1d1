// SPDX-License-Identifier: Apache-2.0
// ChaCha12: the one random generator of the program, and the draws built on it. The stream is fixed
// by a 64-bit seed and consumed as 32-bit words in order, so equal seeds give equal results on
// every machine. One generator per purpose, passed by reference; copies continue independently.
// Four cipher blocks are made at a time; a draw of ready words is a load and an increment.
#pragma once

#include <array>
#include <cstdint>

namespace dynosim {

// A probability prepared for repeated draws. 1 is true without a draw; 0 draws too.
class Probability {
 public:
  // `p` is in [0, 1].
  explicit Probability(double p);
  bool Certain() const { return certain_; }
  std::uint64_t Threshold() const { return threshold_; }

 private:
  std::uint64_t threshold_ = 0;
  bool certain_ = false;
};

class ChaCha12 {
 public:
  explicit ChaCha12(std::uint64_t seed);

  std::uint32_t NextU32() {
    if (next_ == kWords) {
      Refill();
    }
    return words_[next_++];
  }

  // Two words, low first.
  std::uint64_t NextU64() {
    const std::uint64_t low = NextU32();
    return (static_cast<std::uint64_t>(NextU32()) << 32) | low;
  }

  // Uniform in [0, 1) with 53 bits.
  double NextUniform() { return static_cast<double>(NextU64() >> 11) * 0x1p-53; }

  // Uniform integer in [0, n), n >= 1: one word, or two when the first one is ambiguous.
  std::uint32_t NextBelow(std::uint32_t n);

  // Exponential with the given mean; one uniform.
  double NextExponential(double mean);

  bool NextBernoulli(const Probability& p) { return p.Certain() || NextU64() < p.Threshold(); }

 private:
  static constexpr std::uint32_t kBlocks = 4;
  static constexpr std::uint32_t kWords = 16 * kBlocks;

  void Refill();

  std::array<std::uint32_t, 8> key_{};
  std::uint64_t counter_ = 0;
  std::uint32_t next_ = kWords;
  alignas(16) std::array<std::uint32_t, kWords> words_{};
};

}  // namespace dynosim
