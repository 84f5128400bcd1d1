// SPDX-License-Identifier: Apache-2.0
// Errors of the HTTP API, in the form that OpenAI and vLLM clients read, with the flat fields that
// other clients look for beside it.
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace dynosim::live {

struct ApiError {
  int status = 400;
  std::string message;
  std::string param;  // name of the field, empty for none
};

template <class T>
using ApiResult = std::expected<T, ApiError>;

inline std::unexpected<ApiError> BadRequest(std::string message, std::string param = {}) {
  return std::unexpected(
      ApiError{.status = 400, .message = std::move(message), .param = std::move(param)});
}

// "BadRequestError" and so on.
std::string_view ErrorType(int status);
// {"error":{...},"message":...,"type":...,"code":...}
std::string ErrorBody(const ApiError& error);

}  // namespace dynosim::live
