// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/unsigned_list.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dynosim::workload {
namespace {

// Ids of a list mostly count up. Behind a number, while the next one is one more and differs in its
// last digit only, its text is known: the same digits, the last one raised, and the same separator.
class NextNumbers {
 public:
  // `text` is the number and ", " behind its digits.
  NextNumbers(const char* text, int digits) : bytes_(digits + kSeparator) {
    if (bytes_ > static_cast<int>(sizeof text_)) {
      return;
    }
    std::memcpy(&text_, text, sizeof text_);
    raise_ = std::uint64_t{1} << (8 * (digits - 1));
    unused_ = 64 - 8 * bytes_;
    left_ = '9' - text[digits - 1];
  }

  // Whether the next number and its separator are at `at`.
  bool IsAt(const char* at) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    if (left_ == 0 || ((text_ + raise_) ^ word) << unused_ != 0) {
      return false;
    }
    text_ += raise_;
    --left_;
    return true;
  }
  int bytes() const { return bytes_; }

 private:
  static constexpr int kSeparator = 2;

  int bytes_;
  std::uint64_t text_ = 0;
  std::uint64_t raise_ = 0;
  int unused_ = 0;  // bits of a word behind the separator
  int left_ = 0;    // numbers until the last digit would be more than 9
};

}  // namespace

const char* ReadUnsignedList(const char* at, std::uint64_t max, UnsignedList& out) {
  constexpr std::size_t kFirstRoom = 256;
  out.Clear();
  if (*at != '[') {
    return nullptr;
  }
  at = SkipBlanks(at + 1);
  std::size_t size = 0;
  std::size_t room = out.memory.size();
  std::uint64_t* numbers = out.memory.data();
  while (*at != ']' || size != 0) {
    if (size == room) {
      out.memory.resize(std::max(kFirstRoom, room * 2));
      room = out.memory.size();
      numbers = out.memory.data();
    }
    const char* const text = at;
    at = ReadDigits(at, numbers[size]);
    if (at == nullptr || numbers[size] > max) {
      return nullptr;
    }
    ++size;
    if (at[0] == ',' && at[1] == ' ' && IsDigit(at[2])) {  // how most traces are written
      NextNumbers next(text, static_cast<int>(at - text));
      for (at += 2; size < room && numbers[size - 1] < max && next.IsAt(at); at += next.bytes()) {
        numbers[size] = numbers[size - 1] + 1;
        ++size;
      }
      at = SkipBlanks(at);
      continue;
    }
    at = SkipBlanks(at);
    if (*at == ']') {
      break;
    }
    if (*at != ',') {
      return nullptr;
    }
    at = SkipBlanks(at + 1);
  }
  out.present = true;
  out.size = size;
  return at + 1;
}

}  // namespace dynosim::workload
