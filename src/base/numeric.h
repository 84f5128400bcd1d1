// SPDX-License-Identifier: Apache-2.0
// Number rules that results depend on bit for bit: the decimal reader of trace files, conversions
// from double to integer that saturate instead of being undefined, and rounding half away from
// zero.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>

namespace dynosim {

// Reads one JSON number (the whole of `text`, strict grammar) as trace files are read: the digits
// are collected in an unsigned 64-bit significand (digits that no longer fit only count towards the
// exponent), converted to double once, and scaled once by a power of ten. Not correctly rounded:
// numbers of 16 digits and more may differ by one unit in the last place from the nearest double.
// Empty when `text` is no JSON number or its value is too large for a double.
std::optional<double> ParseTraceDecimal(std::string_view text);

// Truncates towards zero; out of range gives the nearest limit, NaN gives 0.
template <class Integer>
constexpr Integer SaturatingCast(double value) {
  static_assert(std::is_integral_v<Integer>);
  using Limits = std::numeric_limits<Integer>;
  // Both bounds are powers of two (or 0), so they are exact doubles.
  constexpr double kEnd = static_cast<double>(Integer{1} << (Limits::digits - 1)) * 2.0;
  constexpr auto kBegin = static_cast<double>(Limits::min());
  if (!(value > kBegin)) {
    return value <= kBegin ? Limits::min() : Integer{0};
  }
  return value >= kEnd ? Limits::max() : static_cast<Integer>(value);
}

// Nearest whole number, ties away from zero.
inline double RoundHalfAway(double value) { return std::round(value); }

// Saturating unsigned arithmetic for lengths that come from users.
constexpr std::uint64_t SaturatingAdd(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b
             ? std::numeric_limits<std::uint64_t>::max()
             : a + b;
}
constexpr std::uint64_t SaturatingMultiply(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b
             ? std::numeric_limits<std::uint64_t>::max()
             : a * b;
}

}  // namespace dynosim
