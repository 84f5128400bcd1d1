// SPDX-License-Identifier: Apache-2.0
// What the tests of reports share: reading a text back, and names of sessions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/json.h"

namespace dynosim::report {

// Null, and a failed test, where the text is no JSON.
inline Json Parsed(std::string_view text) {
  const auto json = ParseJson(text, "text");
  EXPECT_TRUE(json) << json.error().Text();
  return json.value_or(Json());
}

inline std::string SessionName(std::uint32_t session) {
  return "session-" + std::to_string(session);
}

}  // namespace dynosim::report
