// SPDX-License-Identifier: Apache-2.0
#include "base/blake3.h"

#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace dynosim {
namespace {

std::string Hex(std::string_view text) {
  std::string hex;
  for (const auto byte : ShortBlake3(text)) {
    hex += fmt::format("{:02x}", byte);
  }
  return hex;
}

// The published test vectors: byte i of the input is i mod 251.
std::string Pattern(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    text += static_cast<char>(i % 251);
  }
  return text;
}

TEST(ShortBlake3, AgreesWithThePublishedVectors) {
  EXPECT_EQ(Hex(""), "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
  EXPECT_EQ(Hex("abc"), "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85");
  EXPECT_EQ(Hex(Pattern(1)), "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213");
  EXPECT_EQ(Hex(Pattern(1024)), "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7");
}

TEST(ShortBlake3, AFullBlockIsTheLastOne) {
  EXPECT_NE(Hex(Pattern(64)), Hex(Pattern(65)));
  EXPECT_EQ(Hex(Pattern(64)), "4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98");
  EXPECT_EQ(Hex(Pattern(65)), "de1e5fa0be70df6d2be8fffd0e99ceaa8eb6e8c93a63f2d8d1c30ecb6b263dee");
}

}  // namespace
}  // namespace dynosim
