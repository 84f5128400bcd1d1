// SPDX-License-Identifier: Apache-2.0
// The built-in tokenizer: deterministic, without files, reversible for any bytes. English costs
// about as many tokens as with a usual vocabulary; it is no model's tokenizer.
//
// Ids: 0..255 single bytes, 256..258 chat markers, 300..975 pairs of lower-case letters, 1000..1999
// common words with the space before them. Text is cut by the longest match, from left to right.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/flat_map.h"

namespace dynosim::live {

class Tokenizer {
 public:
  static constexpr std::uint32_t kTurnStart = 256;
  static constexpr std::uint32_t kTurnEnd = 257;
  static constexpr std::uint32_t kTextEnd = 258;
  static constexpr std::uint32_t kVocabularySize = 2000;

  Tokenizer();

  void Encode(std::string_view text, std::vector<std::uint32_t>& out) const;
  // Bytes of one token; a part of a character is possible. Markers have their written form, ids
  // outside the vocabulary give nothing.
  std::string_view Bytes(std::uint32_t id) const {
    return id < kVocabularySize ? std::string_view(bytes_[id]) : std::string_view();
  }

 private:
  std::vector<std::string> bytes_;
  FlatMap<std::uint64_t, std::uint32_t> words_;  // hash of the word with its space -> id
  std::size_t longest_word_ = 0;
};

// Turns token bytes into text that is valid UTF-8 at every cut: the head of a character waits for
// its rest, and what can never become a character is replaced by U+FFFD.
class Utf8Stream {
 public:
  // Appends the text that `bytes` completes.
  void Push(std::string_view bytes, std::string& out);
  // What is left at the end.
  void Flush(std::string& out);

 private:
  std::array<char, 4> held_{};
  std::size_t size_ = 0;
};

// Finds stop strings in a stream of text. Text that may be the head of a stop string is held back.
class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  bool active() const { return !stops_.empty(); }
  // Appends what is safe to show; true when a stop string is complete, which ends the text.
  bool Push(std::string_view text, std::string& out);
  void Flush(std::string& out);

 private:
  std::vector<std::string> stops_;
  std::string held_;
};

}  // namespace dynosim::live
