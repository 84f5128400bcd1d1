// SPDX-License-Identifier: Apache-2.0
#include "timing/op_level/module_patterns.h"

#include <cstddef>
#include <string>
#include <string_view>

#include <regex.h>

namespace dynosim::timing {

bool MatchesGlob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0;
  std::size_t star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') {
    ++p;
  }
  return p == pattern.size();
}

bool MatchesFromStart(const std::string& expression, const std::string& text) {
  regex_t compiled{};
  if (regcomp(&compiled, ("^(" + expression + ")").c_str(), REG_EXTENDED | REG_NOSUB) != 0) {
    return false;
  }
  const bool found = regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
  regfree(&compiled);
  return found;
}

}  // namespace dynosim::timing
