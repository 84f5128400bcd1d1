// SPDX-License-Identifier: Apache-2.0
#include "base/json_argument.h"

#include <cstddef>
#include <filesystem>
#include <system_error>

#include "base/text_file.h"

namespace dynosim {

Result<Json> JsonOfArgument(std::string_view flag, const std::string& text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  const bool object = start != std::string::npos && text[start] == '{';
  std::error_code ignored;
  if (object || !std::filesystem::exists(text, ignored)) {
    return ParseJson(text, std::string(flag));
  }
  DYNO_TRY(const TextFile content, TextFile::Read(text));
  return ParseJson(content.Text(), text);
}

}  // namespace dynosim
