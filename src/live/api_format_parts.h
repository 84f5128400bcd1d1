// SPDX-License-Identifier: Apache-2.0
// Parts that the formats share. Internal to api_format*.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "live/api_format.h"

namespace dynosim::live {

inline constexpr std::string_view kDone = "data: [DONE]\n\n";

inline std::string Quoted(std::string_view text) {
  std::string out;
  AppendJsonString(out, text);
  return out;
}

inline void AppendTokens(std::span<const std::uint32_t> ids, std::string& out) {
  out += '[';
  for (std::size_t i = 0; i < ids.size(); ++i) {
    out += i == 0 ? "" : ",";
    out += std::to_string(ids[i]);
  }
  out += ']';
}

inline std::string Extension(const std::string& extension) {
  return extension.empty() ? std::string() : ",\"nvext\":" + extension;
}

std::unique_ptr<ApiFormat> MakeResponsesFormat(const ApiRequest& request, const AnswerHead& head);
std::unique_ptr<ApiFormat> MakeGenerateFormat(const ApiRequest& request, const AnswerHead& head);

}  // namespace dynosim::live
