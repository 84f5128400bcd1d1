// SPDX-License-Identifier: Apache-2.0
// Whole numbers straight from the text of a trace: most of a trace is lists of block ids. The
// functions rely on readable bytes behind the text (TextFile::kPadding) and stop at any character
// that does not belong.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace dynosim::workload {

// A list of numbers, in memory that is kept from row to row.
struct UnsignedList {
  bool present = false;
  std::size_t size = 0;
  std::vector<std::uint64_t> memory;  // the first `size` elements count

  std::span<const std::uint64_t> Values() const { return std::span(memory).first(size); }
  void Clear() {
    present = false;
    size = 0;
  }
};

inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Blanks within a line.
inline const char* SkipBlanks(const char* at) {
  while (*at == ' ' || *at == '\t' || *at == '\r') {
    ++at;
  }
  return at;
}

// Reads the digits at `at`, in one step when there are at most seven. Returns the first character
// behind them, or nullptr when there is no digit, a leading zero, or no room in 64 bits.
inline const char* ReadDigits(const char* at, std::uint64_t& number) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  // The lowest non-zero byte of `other` is the first that is no digit: a digit has the high half 3,
  // also when 6 is added to it.
  const std::uint64_t other =
      ((word & 0xF0F0F0F0F0F0F0F0U) | (((word + 0x0606060606060606U) & 0xF0F0F0F0F0F0F0F0U) >> 4)) ^
      0x3333333333333333U;
  const int digits = std::countr_zero(other) / 8;
  if (digits == 0 || (*at == '0' && digits > 1)) {
    return nullptr;
  }
  if (digits < 8) {
    // Right-aligned digits, then pairs, then fours.
    word <<= 64 - 8 * digits;
    word = (word & 0x0F0F0F0F0F0F0F0FU) * 2561 >> 8;
    word = (word & 0x00FF00FF00FF00FFU) * 6553601 >> 16;
    number = (word & 0x0000FFFF0000FFFFU) * 42949672960001 >> 32;
    return at + digits;
  }
  for (number = 0; IsDigit(*at); ++at) {
    const auto digit = static_cast<std::uint64_t>(*at - '0');
    if (number > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) {
      return nullptr;
    }
    number = number * 10 + digit;
  }
  return at;
}

// Reads "[1, 2, ...]" at `at`, numbers up to `max`, in one pass. Returns the first character behind
// the bracket, or nullptr when there is no such list.
const char* ReadUnsignedList(const char* at, std::uint64_t max, UnsignedList& out);

}  // namespace dynosim::workload
