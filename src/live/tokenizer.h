// SPDX-License-Identifier: Apache-2.0
// Tokenizer: text to token ids and back for everything that the HTTP API does with text. Either
// the built-in one (builtin_tokenizer.h) or that of a tokenizer.json (tokenizer_file.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "live/chat_template.h"

namespace dynosim::live {

class Tokenizer {
 public:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  virtual ~Tokenizer() = default;

  // Appends the ids of a text; `add_special`: with those that a model wants around it, such as a
  // mark of its beginning. Fails with the reason.
  virtual Result<void> Encode(std::string_view text, bool add_special,
                              std::vector<std::uint32_t>& out) const = 0;
  // Appends the ids of a conversation, with the head of the answer when `add_generation_prompt`.
  virtual Result<void> EncodeChat(std::span<const ChatTurn> turns, bool add_generation_prompt,
                                  std::vector<std::uint32_t>& out) const = 0;
  // Text of the ids as a whole, with the written form of special tokens.
  virtual Result<std::string> Decode(std::span<const std::uint32_t> ids) const;

  // Bytes that a token adds to an answer; a part of a character is possible. Ids outside of the
  // vocabulary give nothing.
  std::string_view Bytes(std::uint32_t id) const {
    return id < bytes_.size() ? std::string_view(bytes_[id]) : std::string_view();
  }
  // One more than the largest id.
  std::uint32_t id_end() const { return static_cast<std::uint32_t>(bytes_.size()); }
  // Whether ids that clients send must be below id_end().
  bool checks_ids() const { return checks_ids_; }
  // Marks of a model's vocabulary, which are never generated. The built-in tokenizer has none,
  // since clients send it ids of any vocabulary.
  bool IsSpecial(std::uint32_t id) const { return id < special_.size() && special_[id]; }
  // Ids of generated tokens; empty: those of OutputPlan.
  const std::vector<std::uint32_t>& output_ids() const { return output_ids_; }

 protected:
  std::vector<std::string> bytes_;  // by id
  std::vector<bool> special_;       // by id
  std::vector<std::uint32_t> output_ids_;
  bool checks_ids_ = false;
};

}  // namespace dynosim::live
