// SPDX-License-Identifier: Apache-2.0
// How many cases a test over random cases takes.
#pragma once

#include <cstdint>

namespace dynosim {

#ifdef DYNO_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// All of them; few under the sanitizers, which make each case more than ten times as slow.
constexpr std::uint64_t Cases(std::uint64_t count) { return kSanitized ? count / 30 + 1 : count; }

}  // namespace dynosim
