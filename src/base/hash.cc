// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dynosim {

static_assert(std::endian::native == std::endian::little);

std::uint64_t Xxh3(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::uint64_t LocalBlockHash(std::span<const std::uint32_t> tokens) {
  return Xxh3(std::as_bytes(tokens), kBlockHashSeed);
}

std::uint64_t SequenceHash(std::uint64_t parent_sequence_hash, std::uint64_t local_hash) {
  const std::array<std::uint64_t, 2> pair = {parent_sequence_hash, local_hash};
  return Xxh3(std::as_bytes(std::span(pair)), kBlockHashSeed);
}

std::uint32_t GeneratedToken(std::uint64_t uuid, std::uint64_t ordinal) {
  const std::array<std::uint64_t, 3> words = {0, __builtin_bswap64(uuid), ordinal};
  return static_cast<std::uint32_t>(Xxh3(std::as_bytes(std::span(words)), 0));
}

}  // namespace dynosim
