// SPDX-License-Identifier: Apache-2.0
#include "live/tokenizer.h"

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "live/text_stream.h"

namespace dynosim::live {

Result<std::string> Tokenizer::Decode(std::span<const std::uint32_t> ids) const {
  std::string text;
  Utf8Stream utf8;
  for (const std::uint32_t id : ids) {
    utf8.Push(Bytes(id), text);
  }
  utf8.Flush(text);
  return text;
}

}  // namespace dynosim::live
