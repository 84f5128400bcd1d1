// SPDX-License-Identifier: Apache-2.0
// HfTokenizer: the tokenizer of a tokenizer.json, with the ids that the `tokenizers` library gives.
// Truncation and padding of the file are left out, as servers do.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "live/chat_template.h"
#include "live/hf_tokenizer/c_api.h"
#include "live/tokenizer.h"

namespace dynosim::live {

class HfTokenizer final : public Tokenizer {
 public:
  // From the text of a file; `where` begins the error, which is a usage error.
  static Result<std::shared_ptr<const Tokenizer>> Parse(const std::string& where,
                                                        std::string_view json);

  // A failure is one of the library: a text that a vocabulary without an unknown token cannot take.
  Result<void> Encode(std::string_view text, bool add_special,
                      std::vector<std::uint32_t>& out) const override;
  // The rendered conversation is one text, in which written markers count as markers. Special
  // tokens are added only where the form has no markers.
  Result<void> EncodeChat(std::span<const ChatTurn> turns, bool add_generation_prompt,
                          std::vector<std::uint32_t>& out) const override;
  Result<std::string> Decode(std::span<const std::uint32_t> ids) const override;

  ChatForm chat_form() const { return chat_form_; }

  struct Free {
    void operator()(DynoHfTokenizer* handle) const { dyno_hf_free(handle); }
  };
  using Handle = std::unique_ptr<DynoHfTokenizer, Free>;
  // For Parse, which fills the rest.
  explicit HfTokenizer(Handle handle) : handle_(std::move(handle)) {}

 private:
  Result<void> ReadVocabulary();
  bool IsOneToken(std::uint32_t id) const;
  void ChooseOutputIds();

  Handle handle_;
  ChatForm chat_form_ = ChatForm::kPlain;
};

}  // namespace dynosim::live
