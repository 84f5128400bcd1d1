// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace dynosim {

namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string EncodeBase64(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = (group << 8) | (k < left ? std::to_integer<std::uint32_t>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += k <= left ? kDigits[(group >> (18 - 6 * k)) & 63U] : '=';
    }
  }
  return text;
}

std::string EncodeBase64(std::string_view bytes) {
  return EncodeBase64(std::as_bytes(std::span(bytes)));
}

Result<std::string> DecodeBase64(std::string_view text) {
  const auto wrong = [] { return FailedError("", "is no base64 text"); };
  if (text.size() % 4 != 0) {
    return wrong();
  }
  std::size_t padding = 0;
  while (padding < 2 && text.ends_with('=')) {
    text.remove_suffix(1);
    ++padding;
  }
  std::string out;
  std::uint32_t group = 0;
  for (std::size_t i = 0; i < text.size() + padding; ++i) {
    const std::size_t digit = i < text.size() ? kDigits.find(text[i]) : 0;
    if (digit == std::string_view::npos) {
      return wrong();
    }
    group = (group << 6) | static_cast<std::uint32_t>(digit);
    if (i % 4 == 3) {
      out += static_cast<char>(group >> 16U);
      out += static_cast<char>(group >> 8U);
      out += static_cast<char>(group);
      group = 0;
    }
  }
  out.resize(out.size() - padding);
  return out;
}

}  // namespace dynosim
