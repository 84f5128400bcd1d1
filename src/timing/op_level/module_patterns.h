// SPDX-License-Identifier: Apache-2.0
// Patterns by which checkpoints name the modules that they leave unquantized.
#pragma once

#include <string>
#include <string_view>

namespace dynosim::timing {

// '*' stands for any text, everything else for itself; the whole text must match.
bool MatchesGlob(std::string_view pattern, std::string_view text);
// Extended regular expression, matched from the start of the text; false for a broken one.
bool MatchesFromStart(const std::string& expression, const std::string& text);

}  // namespace dynosim::timing
