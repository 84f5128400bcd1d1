// SPDX-License-Identifier: Apache-2.0
// BLAKE3 of short inputs. Names in some traces carry a digest of a file name, and the order of
// requests follows it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dynosim {

inline constexpr std::size_t kBlake3MaxInput = 1024;  // one chunk

// The 32-byte digest; `text` has at most kBlake3MaxInput bytes.
std::array<std::uint8_t, 32> ShortBlake3(std::string_view text);

}  // namespace dynosim
