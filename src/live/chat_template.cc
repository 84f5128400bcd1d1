// SPDX-License-Identifier: Apache-2.0
#include "live/chat_template.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace dynosim::live {

namespace {

constexpr std::array<std::string_view, 2> kChatMlMarkers = {"<|im_start|>", "<|im_end|>"};
constexpr std::array<std::string_view, 4> kLlama3Markers = {
    "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"};
constexpr std::string_view kAnswering = "assistant";

// What stands around the parts of a turn.
struct Frame {
  std::string_view text_begin, turn_begin, role_end, answer_role_end, turn_end;
  bool trims;
};

Frame FrameOf(ChatForm form) {
  switch (form) {
    case ChatForm::kChatMl:
      return {.text_begin = "",
              .turn_begin = "<|im_start|>",
              .role_end = "\n",
              .answer_role_end = "\n",
              .turn_end = "<|im_end|>\n",
              .trims = false};
    case ChatForm::kLlama3:
      return {.text_begin = "<|begin_of_text|>",
              .turn_begin = "<|start_header_id|>",
              .role_end = "<|end_header_id|>\n\n",
              .answer_role_end = "<|end_header_id|>\n\n",
              .turn_end = "<|eot_id|>",
              .trims = true};
    case ChatForm::kPlain:
      break;
  }
  return {.text_begin = "",
          .turn_begin = "",
          .role_end = ": ",
          .answer_role_end = ":",
          .turn_end = "\n",
          .trims = false};
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  const std::size_t first = std::min(text.find_first_not_of(kBlanks), text.size());
  const std::size_t last = text.find_last_not_of(kBlanks);
  return last == std::string_view::npos ? std::string_view() : text.substr(first, last + 1 - first);
}

}  // namespace

ChatForm ChooseChatForm(const std::function<bool(std::string_view token)>& knows) {
  if (std::ranges::all_of(kChatMlMarkers, knows)) {
    return ChatForm::kChatMl;
  }
  return std::ranges::all_of(kLlama3Markers, knows) ? ChatForm::kLlama3 : ChatForm::kPlain;
}

std::string RenderChat(ChatForm form, std::span<const ChatTurn> turns, bool add_generation_prompt) {
  const Frame frame = FrameOf(form);
  std::string out(frame.text_begin);
  for (const ChatTurn& turn : turns) {
    out += frame.turn_begin;
    out += turn.role;
    out += frame.role_end;
    std::string text;
    for (const std::string_view part : turn.parts) {
      text += part;
    }
    out += frame.trims ? Trimmed(text) : std::string_view(text);
    out += frame.turn_end;
  }
  if (add_generation_prompt) {
    out += frame.turn_begin;
    out += kAnswering;
    out += frame.answer_role_end;
  }
  return out;
}

}  // namespace dynosim::live
