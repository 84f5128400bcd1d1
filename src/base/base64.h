// SPDX-License-Identifier: Apache-2.0
// Base64 (RFC 4648, section 4), with padding.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace dynosim {

std::string EncodeBase64(std::span<const std::byte> bytes);
std::string EncodeBase64(std::string_view bytes);
// Fails on anything else, whitespace included.
Result<std::string> DecodeBase64(std::string_view text);

}  // namespace dynosim
