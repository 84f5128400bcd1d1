// SPDX-License-Identifier: Apache-2.0
#include "base/blake3.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"

namespace dynosim {
namespace {

using Words = std::array<std::uint32_t, 8>;
using Block = std::array<std::uint32_t, 16>;

constexpr Words kStart = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
                          0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};
constexpr std::array<std::size_t, 16> kPermutation = {2, 6,  3,  10, 7, 0,  4,  13,
                                                      1, 11, 12, 5,  9, 14, 15, 8};
constexpr std::size_t kBlockBytes = 64;
constexpr std::uint32_t kChunkStart = 1;
constexpr std::uint32_t kChunkEnd = 2;
constexpr std::uint32_t kRoot = 8;
constexpr int kRounds = 7;

void Mix(Block& v, std::size_t a, std::size_t b, std::size_t c, std::size_t d, std::uint32_t x,
         std::uint32_t y) {
  v[a] += v[b] + x;
  v[d] = std::rotr(v[d] ^ v[a], 16);
  v[c] += v[d];
  v[b] = std::rotr(v[b] ^ v[c], 12);
  v[a] += v[b] + y;
  v[d] = std::rotr(v[d] ^ v[a], 8);
  v[c] += v[d];
  v[b] = std::rotr(v[b] ^ v[c], 7);
}

void Round(Block& v, const Block& m) {
  Mix(v, 0, 4, 8, 12, m[0], m[1]);
  Mix(v, 1, 5, 9, 13, m[2], m[3]);
  Mix(v, 2, 6, 10, 14, m[4], m[5]);
  Mix(v, 3, 7, 11, 15, m[6], m[7]);
  Mix(v, 0, 5, 10, 15, m[8], m[9]);
  Mix(v, 1, 6, 11, 12, m[10], m[11]);
  Mix(v, 2, 7, 8, 13, m[12], m[13]);
  Mix(v, 3, 4, 9, 14, m[14], m[15]);
}

Words Compress(const Words& chain, Block message, std::uint32_t bytes, std::uint32_t flags) {
  Block v{};
  std::copy(chain.begin(), chain.end(), v.begin());
  std::copy_n(kStart.begin(), 4, v.begin() + 8);
  v[14] = bytes;
  v[15] = flags;
  for (int round = 0; round < kRounds; ++round) {
    Round(v, message);
    Block permuted{};
    for (std::size_t i = 0; i < permuted.size(); ++i) {
      permuted[i] = message[kPermutation[i]];
    }
    message = permuted;
  }
  Words out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = v[i] ^ v[i + 8];
  }
  return out;
}

// Little-endian words of up to 64 bytes, zeros behind them.
Block LoadBlock(std::string_view text) {
  Block words{};
  for (std::size_t i = 0; i < text.size(); ++i) {
    words[i / 4] |= std::uint32_t{static_cast<std::uint8_t>(text[i])} << (8 * (i % 4));
  }
  return words;
}

}  // namespace

std::array<std::uint8_t, 32> ShortBlake3(std::string_view text) {
  DYNO_CHECK(text.size() <= kBlake3MaxInput);
  Words chain = kStart;
  std::uint32_t flags = kChunkStart;
  while (text.size() > kBlockBytes) {
    chain = Compress(chain, LoadBlock(text.substr(0, kBlockBytes)), kBlockBytes, flags);
    text.remove_prefix(kBlockBytes);
    flags = 0;
  }
  chain = Compress(chain, LoadBlock(text), static_cast<std::uint32_t>(text.size()),
                   flags | kChunkEnd | kRoot);
  std::array<std::uint8_t, 32> digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::uint8_t>(chain[i / 4] >> (8 * (i % 4)));
  }
  return digest;
}

}  // namespace dynosim
