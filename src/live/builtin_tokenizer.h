// SPDX-License-Identifier: Apache-2.0
// The built-in tokenizer: deterministic, without files, reversible for any bytes. English costs
// about as many tokens as with a usual vocabulary; it is no model's tokenizer.
//
// Ids: 0..255 single bytes, 256..258 chat markers, 300..975 pairs of lower-case letters, 1000..1999
// common words with the space before them. Text is cut by the longest match, from left to right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/flat_map.h"
#include "base/result.h"
#include "live/chat_template.h"
#include "live/tokenizer.h"

namespace dynosim::live {

class BuiltinTokenizer final : public Tokenizer {
 public:
  static constexpr std::uint32_t kTurnStart = 256;
  static constexpr std::uint32_t kTurnEnd = 257;
  static constexpr std::uint32_t kTextEnd = 258;
  static constexpr std::uint32_t kVocabularySize = 2000;

  BuiltinTokenizer();

  // Nothing fails, and nothing stands around a text.
  Result<void> Encode(std::string_view text, bool add_special,
                      std::vector<std::uint32_t>& out) const override;
  // ChatML, with markers that no text contains.
  Result<void> EncodeChat(std::span<const ChatTurn> turns, bool add_generation_prompt,
                          std::vector<std::uint32_t>& out) const override;

 private:
  void Append(std::string_view text, std::vector<std::uint32_t>& out) const;

  FlatMap<std::uint64_t, std::uint32_t> words_;  // hash of the word with its space -> id
  std::size_t longest_word_ = 0;
};

}  // namespace dynosim::live
