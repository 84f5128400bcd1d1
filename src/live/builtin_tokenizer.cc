// SPDX-License-Identifier: Apache-2.0
#include "live/builtin_tokenizer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "base/result.h"
#include "live/chat_template.h"
#include "live/vocabulary.h"

namespace dynosim::live {

namespace {

constexpr std::uint32_t kFirstPair = 300;
constexpr std::uint32_t kFirstWord = 1000;

std::uint64_t Key(std::string_view text) {
  return Xxh3(std::as_bytes(std::span(text.data(), text.size())), 0);
}

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }

}  // namespace

BuiltinTokenizer::BuiltinTokenizer() {
  bytes_.resize(kVocabularySize);
  for (std::uint32_t i = 0; i < 256; ++i) {
    bytes_[i] = std::string(1, static_cast<char>(i));
  }
  bytes_[kTurnStart] = "<|im_start|>";
  bytes_[kTurnEnd] = "<|im_end|>";
  bytes_[kTextEnd] = "<|endoftext|>";
  for (std::uint32_t i = 0; i < 26U * 26U; ++i) {
    bytes_[kFirstPair + i] = {static_cast<char>('a' + i / 26), static_cast<char>('a' + i % 26)};
  }
  std::string_view words = VocabularyWords();
  for (std::uint32_t id = kFirstWord; id < kVocabularySize; ++id) {
    const std::size_t end = std::min(words.find(' '), words.size());
    bytes_[id] = " " + std::string(words.substr(0, end));
    longest_word_ = std::max(longest_word_, bytes_[id].size());
    *words_.TryInsert(Key(bytes_[id]), id).first = id;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  DYNO_CHECK(words.empty());
}

Result<void> BuiltinTokenizer::Encode(std::string_view text, bool /*add_special*/,
                                      std::vector<std::uint32_t>& out) const {
  Append(text, out);
  return {};
}

Result<void> BuiltinTokenizer::EncodeChat(std::span<const ChatTurn> turns,
                                          bool add_generation_prompt,
                                          std::vector<std::uint32_t>& out) const {
  for (const ChatTurn& turn : turns) {
    out.push_back(kTurnStart);
    Append(std::string(turn.role) + "\n", out);
    for (const std::string_view part : turn.parts) {
      Append(part, out);
    }
    out.push_back(kTurnEnd);
    Append("\n", out);
  }
  if (add_generation_prompt) {
    out.push_back(kTurnStart);
    Append("assistant\n", out);
  }
  return {};
}

void BuiltinTokenizer::Append(std::string_view text, std::vector<std::uint32_t>& out) const {
  std::size_t at = 0;
  while (at < text.size()) {
    if (text[at] == ' ') {
      std::size_t end = at + 1;
      while (end < text.size() && end - at <= longest_word_ && IsLower(text[end])) {
        ++end;
      }
      const std::uint32_t* found = nullptr;
      // The whole word first, then shorter heads of it.
      for (; end > at + 1 && found == nullptr; --end) {
        const std::string_view head = text.substr(at, end - at);
        const std::uint32_t* candidate = words_.Find(Key(head));
        if (candidate != nullptr && bytes_[*candidate] == head) {
          found = candidate;
          at += head.size();
        }
      }
      if (found != nullptr) {
        out.push_back(*found);
        continue;
      }
    }
    if (at + 1 < text.size() && IsLower(text[at]) && IsLower(text[at + 1])) {
      out.push_back(kFirstPair + static_cast<std::uint32_t>(text[at] - 'a') * 26 +
                    static_cast<std::uint32_t>(text[at + 1] - 'a'));
      at += 2;
      continue;
    }
    out.push_back(static_cast<unsigned char>(text[at]));
    ++at;
  }
}

}  // namespace dynosim::live
