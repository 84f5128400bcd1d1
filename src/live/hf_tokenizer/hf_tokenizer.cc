// SPDX-License-Identifier: Apache-2.0
#include "live/hf_tokenizer/hf_tokenizer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "base/text_file.h"
#include "live/chat_template.h"
#include "live/hf_tokenizer/c_api.h"
#include "live/text_stream.h"
#include "live/tokenizer.h"
#include "live/tokenizer_file.h"

namespace dynosim::live {

namespace {

constexpr std::uintmax_t kFileBytesMax = std::uintmax_t{256} << 20U;
// Generated tokens are this many different ones at most: words, unless there are too few of them.
constexpr std::size_t kOutputIdsMax = 512;
constexpr std::size_t kWordsMin = 16;
// A text in front of a token, so that it is not at the beginning.
constexpr std::string_view kBefore = "a";

void AppendText(void* out, const char* bytes, std::size_t size) {
  static_cast<std::string*>(out)->append(bytes, size);
}

void AppendIds(void* out, const std::uint32_t* ids, std::size_t count) {
  auto& list = *static_cast<std::vector<std::uint32_t>*>(out);
  list.insert(list.end(), ids, ids + count);
}

DynoHfError Into(std::string& text) { return {.text = &AppendText, .out = &text}; }

// " the" and the like.
bool IsWord(std::string_view text) {
  return text.size() > 1 && text[0] == ' ' &&
         std::ranges::all_of(text.substr(1), [](char c) { return c >= 'a' && c <= 'z'; });
}

// Whole characters that can be seen.
bool IsPrintable(std::string_view text) {
  std::string valid;
  Utf8Stream utf8;
  utf8.Push(text, valid);
  utf8.Flush(valid);
  return !text.empty() && valid == text && text.find("\xEF\xBF\xBD") == std::string_view::npos &&
         std::ranges::all_of(text, [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte > 0x20 && byte != 0x7F;
         });
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> HfTokenizer::Parse(const std::string& where,
                                                            std::string_view json) {
  std::string error;
  Handle handle(dyno_hf_open(json.data(), json.size(), Into(error)));
  if (handle == nullptr) {
    return UsageError(where, "is no tokenizer.json that can be read: " + error);
  }
  auto out = std::make_shared<HfTokenizer>(std::move(handle));
  if (auto read = out->ReadVocabulary(); !read) {
    return UsageError(where, read.error().message);
  }
  return out;
}

Result<void> HfTokenizer::ReadVocabulary() {
  const std::uint32_t end = dyno_hf_id_end(handle_.get());
  bytes_.resize(end);
  special_.resize(end);
  for (std::uint32_t id = 0; id < end; ++id) {
    special_[id] = dyno_hf_is_special(handle_.get(), id);
    std::string error;
    if (!special_[id] &&
        !dyno_hf_token_bytes(handle_.get(), id, &AppendText, &bytes_[id], Into(error))) {
      return UsageError("", fmt::format("token {} cannot be decoded: {}", id, error));
    }
  }
  checks_ids_ = true;
  chat_form_ = ChooseChatForm([&](std::string_view token) {
    std::uint32_t id = 0;
    return dyno_hf_find(handle_.get(), token.data(), token.size(), &id);
  });
  ChooseOutputIds();
  if (output_ids_.empty()) {
    return UsageError("", "has no token with printable text, so nothing can be generated");
  }
  return {};
}

// Whether the text of the token, in the middle of another, is that token again.
bool HfTokenizer::IsOneToken(std::uint32_t id) const {
  std::vector<std::uint32_t> before;
  std::vector<std::uint32_t> both;
  if (!Encode(kBefore, false, before) || !Encode(std::string(kBefore) + bytes_[id], false, both)) {
    return false;
  }
  before.push_back(id);
  return both == before;
}

// The first words of the vocabulary, which clients count as the server does when they tokenize an
// answer. A vocabulary without words generates whatever can be seen.
void HfTokenizer::ChooseOutputIds() {
  for (std::uint32_t id = 0; id < id_end() && output_ids_.size() < kOutputIdsMax; ++id) {
    if (!IsSpecial(id) && IsWord(bytes_[id]) && IsOneToken(id)) {
      output_ids_.push_back(id);
    }
  }
  if (output_ids_.size() >= kWordsMin) {
    return;
  }
  output_ids_.clear();
  for (std::uint32_t id = 0; id < id_end() && output_ids_.size() < kOutputIdsMax; ++id) {
    if (!IsSpecial(id) && (IsPrintable(bytes_[id]) || IsWord(bytes_[id]))) {
      output_ids_.push_back(id);
    }
  }
}

Result<void> HfTokenizer::Encode(std::string_view text, bool add_special,
                                 std::vector<std::uint32_t>& out) const {
  std::string error;
  if (!dyno_hf_encode(handle_.get(), text.data(), text.size(), add_special, &AppendIds, &out,
                      Into(error))) {
    return FailedError("", "the tokenizer failed: " + error);
  }
  return {};
}

Result<void> HfTokenizer::EncodeChat(std::span<const ChatTurn> turns, bool add_generation_prompt,
                                     std::vector<std::uint32_t>& out) const {
  return Encode(RenderChat(chat_form_, turns, add_generation_prompt),
                chat_form_ == ChatForm::kPlain, out);
}

Result<std::string> HfTokenizer::Decode(std::span<const std::uint32_t> ids) const {
  std::string text;
  std::string error;
  if (!dyno_hf_decode(handle_.get(), ids.data(), ids.size(), false, &AppendText, &text,
                      Into(error))) {
    return FailedError("", "the tokenizer failed: " + error);
  }
  return text;
}

bool ReadsTokenizerFiles() { return true; }

Result<std::shared_ptr<const Tokenizer>> OpenTokenizerFile(const std::string& flag,
                                                           const std::string& path) {
  std::error_code error;
  std::filesystem::path file = path;
  if (std::filesystem::is_directory(file, error)) {
    file /= "tokenizer.json";
  }
  if (!std::filesystem::is_regular_file(file, error)) {
    return UsageError(flag, fmt::format("{} is no file; a tokenizer.json is needed, or a folder "
                                        "with one",
                                        file.string()));
  }
  if (const std::uintmax_t size = std::filesystem::file_size(file, error);
      error || size > kFileBytesMax) {
    return UsageError(
        flag, fmt::format("{} must have {} MB at most", file.string(), kFileBytesMax >> 20U));
  }
  const auto text = TextFile::Read(file.string());
  if (!text) {
    return UsageError(flag, text.error().Text());
  }
  return HfTokenizer::Parse(fmt::format("{}: {}", flag, file.string()), text->Text());
}

}  // namespace dynosim::live
