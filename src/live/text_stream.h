// SPDX-License-Identifier: Apache-2.0
// From the bytes of tokens to the text of an answer: whole characters, and stop strings.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dynosim::live {

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
