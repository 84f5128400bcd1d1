// SPDX-License-Identifier: Apache-2.0
#include "live/text_stream.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace dynosim::live {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// Length of the character that starts with this byte, 0 if none does.
std::size_t CharacterLength(unsigned char lead) {
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xC2 && lead <= 0xDF) {
    return 2;
  }
  if (lead >= 0xE0 && lead <= 0xEF) {
    return 3;
  }
  return lead >= 0xF0 && lead <= 0xF4 ? 4 : 0;
}

// The second byte has a narrower range after some leads: no surrogates, nothing overlong, nothing
// above U+10FFFF.
bool SecondFits(unsigned char lead, unsigned char second) {
  switch (lead) {
    case 0xE0:
      return second >= 0xA0;
    case 0xED:
      return second < 0xA0;
    case 0xF0:
      return second >= 0x90;
    case 0xF4:
      return second < 0x90;
    default:
      return true;
  }
}

}  // namespace

void Utf8Stream::Push(std::string_view bytes, std::string& out) {
  for (const char c : bytes) {
    if (size_ > 0) {
      const auto lead = static_cast<unsigned char>(held_[0]);
      const bool fits =
          IsContinuation(c) && (size_ > 1 || SecondFits(lead, static_cast<unsigned char>(c)));
      if (fits) {
        held_[size_++] = c;
        if (size_ == CharacterLength(lead)) {
          out.append(held_.data(), size_);
          size_ = 0;
        }
        continue;
      }
      out += kReplacement;
      size_ = 0;
    }
    const std::size_t length = CharacterLength(static_cast<unsigned char>(c));
    if (length == 1) {
      out += c;
    } else if (length == 0) {
      out += kReplacement;
    } else {
      held_[size_++] = c;
    }
  }
}

void Utf8Stream::Flush(std::string& out) {
  if (size_ > 0) {
    out += kReplacement;
    size_ = 0;
  }
}

bool StopMatcher::Push(std::string_view text, std::string& out) {
  held_ += text;
  std::size_t first = std::string::npos;
  for (const std::string& stop : stops_) {
    first = std::min(first, held_.find(stop));
  }
  if (first != std::string::npos) {
    out.append(held_, 0, first);
    held_.clear();
    return true;
  }
  // The longest tail that starts a stop string stays.
  std::size_t keep = 0;
  for (const std::string& stop : stops_) {
    for (std::size_t size = std::min(stop.size() - 1, held_.size()); size > keep; --size) {
      if (held_.ends_with(std::string_view(stop).substr(0, size))) {
        keep = size;
        break;
      }
    }
  }
  out.append(held_, 0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return false;
}

void StopMatcher::Flush(std::string& out) {
  out += held_;
  held_.clear();
}

}  // namespace dynosim::live
