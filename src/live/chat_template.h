// SPDX-License-Identifier: Apache-2.0
// Chat templates: how a conversation becomes one prompt. No template of a model is read; the form
// is chosen by the markers that a vocabulary knows.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dynosim::live {

// One message: who speaks, and the parts of the text.
struct ChatTurn {
  std::string_view role;
  std::vector<std::string_view> parts;
};

enum class ChatForm : std::uint8_t {
  kChatMl,  // <|im_start|>role\ntext<|im_end|>\n
  kLlama3,  // <|start_header_id|>role<|end_header_id|>\n\ntext<|eot_id|>, text without outer blanks
  kPlain,   // role: text\n
};

// The first form whose markers are all known, kPlain otherwise.
ChatForm ChooseChatForm(const std::function<bool(std::string_view token)>& knows);

// The text of a conversation, with the head of the assistant's turn when `add_generation_prompt`.
std::string RenderChat(ChatForm form, std::span<const ChatTurn> turns, bool add_generation_prompt);

}  // namespace dynosim::live
