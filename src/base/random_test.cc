// SPDX-License-Identifier: Apache-2.0
// The ChaCha12 stream against a plain one-block generator, and the draws made from it.
#include "base/random.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace dynosim {
namespace {

// One block at a time, written from the definition: the oracle of the four-lane generator.
class PlainChaCha12 {
 public:
  explicit PlainChaCha12(std::uint64_t seed) {
    for (std::uint32_t& word : key_) {
      seed = seed * 6364136223846793005U + 11634580027462260723U;
      const auto x = static_cast<std::uint32_t>(((seed >> 18) ^ seed) >> 27);
      const auto rot = static_cast<std::uint32_t>(seed >> 59);
      word = rot == 0 ? x : (x >> rot) | (x << (32 - rot));
    }
  }
  std::uint32_t Next() {
    if (at_ == 16) {
      MakeBlock();
    }
    return block_[at_++];
  }

 private:
  static std::uint32_t Rotl(std::uint32_t v, int n) { return (v << n) | (v >> (32 - n)); }
  static void Quarter(std::uint32_t* x, int a, int b, int c, int d) {
    x[a] += x[b];
    x[d] = Rotl(x[d] ^ x[a], 16);
    x[c] += x[d];
    x[b] = Rotl(x[b] ^ x[c], 12);
    x[a] += x[b];
    x[d] = Rotl(x[d] ^ x[a], 8);
    x[c] += x[d];
    x[b] = Rotl(x[b] ^ x[c], 7);
  }
  void MakeBlock() {
    std::uint32_t start[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
    for (int i = 0; i < 8; ++i) {
      start[4 + i] = key_[i];
    }
    start[12] = static_cast<std::uint32_t>(counter_);
    start[13] = static_cast<std::uint32_t>(counter_ >> 32);
    ++counter_;
    for (int i = 0; i < 16; ++i) {
      block_[i] = start[i];
    }
    for (int round = 0; round < 6; ++round) {
      for (int i = 0; i < 4; ++i) {
        Quarter(block_, i, 4 + i, 8 + i, 12 + i);
      }
      for (int i = 0; i < 4; ++i) {
        Quarter(block_, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
      }
    }
    for (int i = 0; i < 16; ++i) {
      block_[i] += start[i];
    }
    at_ = 0;
  }

  std::uint32_t key_[8] = {};
  std::uint32_t block_[16] = {};
  std::uint64_t counter_ = 0;
  int at_ = 16;
};

TEST(ChaCha12, StreamEqualsTheDefinitionWordByWord) {
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{42}, ~std::uint64_t{0}}) {
    ChaCha12 fast(seed);
    PlainChaCha12 plain(seed);
    for (int i = 0; i < 1000; ++i) {
      ASSERT_EQ(fast.NextU32(), plain.Next()) << "seed " << seed << " word " << i;
    }
  }
}

TEST(ChaCha12, WideDrawTakesTwoWordsLowFirstAcrossBlockBorders) {
  ChaCha12 wide(7);
  ChaCha12 narrow(7);
  narrow.NextU32();
  wide.NextU32();
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t low = narrow.NextU32();
    const std::uint64_t high = narrow.NextU32();
    ASSERT_EQ(wide.NextU64(), low | (high << 32));
  }
}

TEST(ChaCha12, UniformIsTheTopFiftyThreeBits) {
  ChaCha12 a(5);
  ChaCha12 b(5);
  for (int i = 0; i < 100; ++i) {
    const double u = a.NextUniform();
    EXPECT_EQ(u, static_cast<double>(b.NextU64() >> 11) / 9007199254740992.0);
    EXPECT_GE(u, 0.0);
    EXPECT_LT(u, 1.0);
  }
}

TEST(ChaCha12, BoundedIntegerIsTheHighHalfOfTheProduct) {
  ChaCha12 draws(42);
  ChaCha12 words(42);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t w = words.NextU32();
    // For so small a bound a second word is needed with probability 2^-30.
    ASSERT_EQ(draws.NextBelow(3), static_cast<std::uint32_t>((w * 3) >> 32));
  }
}

TEST(ChaCha12, BoundedIntegerTakesASecondWordOnlyWhenTheFirstIsAmbiguous) {
  const std::uint32_t n = 0xC0000000U;
  ChaCha12 draws(1);
  ChaCha12 words(1);
  int second_words = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t product = static_cast<std::uint64_t>(words.NextU32()) * n;
    std::uint64_t expected = product >> 32;
    const std::uint64_t low = product & 0xFFFFFFFFU;
    if (low > 0x40000000U) {
      ++second_words;
      const std::uint64_t high = (static_cast<std::uint64_t>(words.NextU32()) * n) >> 32;
      expected += (low + high) >> 32;
    }
    ASSERT_EQ(draws.NextBelow(n), expected);
  }
  EXPECT_GT(second_words, 500);
}

TEST(ChaCha12, CertainProbabilityDrawsNothingAndImpossibleOneDraws) {
  ChaCha12 draws(9);
  ChaCha12 words(9);
  EXPECT_TRUE(draws.NextBernoulli(Probability(1.0)));
  EXPECT_EQ(draws.NextU32(), words.NextU32());
  EXPECT_FALSE(draws.NextBernoulli(Probability(0.0)));
  words.NextU64();
  EXPECT_EQ(draws.NextU32(), words.NextU32());
}

TEST(ChaCha12, BernoulliComparesWithTheScaledProbability) {
  ChaCha12 draws(11);
  ChaCha12 words(11);
  const Probability p(0.85);
  int hits = 0;
  for (int i = 0; i < 10000; ++i) {
    const bool hit = draws.NextBernoulli(p);
    ASSERT_EQ(hit, words.NextU64() < static_cast<std::uint64_t>(0.85 * 18446744073709551616.0));
    hits += hit ? 1 : 0;
  }
  EXPECT_NEAR(hits, 8500, 150);
}

TEST(ChaCha12, ExponentialGapsHaveTheMeanAndAreFinite) {
  ChaCha12 draws(42);
  double sum = 0.0;
  for (int i = 0; i < 100000; ++i) {
    const double gap = draws.NextExponential(125.0);
    ASSERT_GE(gap, 0.0);
    sum += gap;
  }
  EXPECT_NEAR(sum / 100000, 125.0, 1.5);
}

}  // namespace
}  // namespace dynosim
