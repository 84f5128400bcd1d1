// SPDX-License-Identifier: Apache-2.0
#include "base/numeric.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>

namespace dynosim {
namespace {

constexpr int kMaxPower = 308;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Powers of ten, each the nearest double.
double PowerOfTen(int power) {
  static const auto powers_of_ten = [] {
    std::array<double, kMaxPower + 1> powers{};
    std::array<char, 8> text{};
    for (int i = 0; i <= kMaxPower; ++i) {
      text = {'1', 'e', static_cast<char>('0' + i / 100), static_cast<char>('0' + i / 10 % 10),
              static_cast<char>('0' + i % 10)};
      powers[static_cast<std::size_t>(i)] = std::strtod(text.data(), nullptr);
    }
    return powers;
  }();
  return powers_of_ten[static_cast<std::size_t>(power)];
}

// Scales once by 10^exponent; beyond the table in steps of the largest power.
std::optional<double> Scale(double value, std::int64_t exponent) {
  while (exponent < -kMaxPower) {
    if (value == 0.0) {
      return value;
    }
    value /= PowerOfTen(kMaxPower);
    exponent += kMaxPower;
  }
  if (exponent < 0) {
    return value / PowerOfTen(static_cast<int>(-exponent));
  }
  if (value == 0.0) {
    return value;
  }
  if (exponent > kMaxPower) {
    return std::nullopt;
  }
  value *= PowerOfTen(static_cast<int>(exponent));
  return value <= std::numeric_limits<double>::max() ? std::optional(value) : std::nullopt;
}

// The digits read so far: value = significand * 10^exponent. Once a digit does not fit, it and all
// digits behind it are dropped.
class Significand {
 public:
  void AddDigit(char c, bool fraction) {
    const auto digit = static_cast<std::uint64_t>(c - '0');
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
    full_ = full_ || value_ > kMax / 10 || (value_ == kMax / 10 && digit > kMax % 10);
    if (full_) {
      exponent_ += fraction ? 0 : 1;
      return;
    }
    value_ = value_ * 10 + digit;
    exponent_ -= fraction ? 1 : 0;
  }
  std::uint64_t value() const { return value_; }
  std::int64_t Exponent() const { return exponent_; }

 private:
  std::uint64_t value_ = 0;
  std::int64_t exponent_ = 0;
  bool full_ = false;
};

// Reads [eE][+-]?digits at `i`. Magnitudes are capped; the cap is beyond every double.
std::optional<std::int64_t> ParseExponent(std::string_view text, std::size_t& i) {
  ++i;
  const bool negative = i < text.size() && text[i] == '-';
  if (i < text.size() && (text[i] == '+' || text[i] == '-')) {
    ++i;
  }
  if (i == text.size() || !IsDigit(text[i])) {
    return std::nullopt;
  }
  constexpr std::int64_t kCap = std::numeric_limits<std::int32_t>::max();
  std::int64_t value = 0;
  for (; i < text.size() && IsDigit(text[i]); ++i) {
    value = value * 10 + (text[i] - '0');
    value = value < kCap ? value : kCap;
  }
  return negative ? -value : value;
}

}  // namespace

std::optional<double> ParseTraceDecimal(std::string_view text) {
  std::size_t i = 0;
  const bool negative = !text.empty() && text[0] == '-';
  i += negative ? 1 : 0;
  if (i == text.size() || !IsDigit(text[i]) ||
      (text[i] == '0' && i + 1 < text.size() && IsDigit(text[i + 1]))) {
    return std::nullopt;
  }
  Significand digits;
  for (; i < text.size() && IsDigit(text[i]); ++i) {
    digits.AddDigit(text[i], false);
  }
  if (i < text.size() && text[i] == '.') {
    const std::size_t first = ++i;
    for (; i < text.size() && IsDigit(text[i]); ++i) {
      digits.AddDigit(text[i], true);
    }
    if (i == first) {
      return std::nullopt;
    }
  }
  std::int64_t exponent = digits.Exponent();
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    const auto written = ParseExponent(text, i);
    if (!written) {
      return std::nullopt;
    }
    exponent += *written;
  }
  if (i != text.size()) {
    return std::nullopt;
  }
  const auto magnitude = Scale(static_cast<double>(digits.value()), exponent);
  if (!magnitude) {
    return std::nullopt;
  }
  return negative ? -*magnitude : *magnitude;
}

}  // namespace dynosim
