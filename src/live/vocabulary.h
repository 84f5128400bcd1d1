// SPDX-License-Identifier: Apache-2.0
// The word list of the built-in tokenizer.
#pragma once

#include <string_view>

namespace dynosim::live {

// 1000 different words, separated by single spaces.
std::string_view VocabularyWords();

}  // namespace dynosim::live
