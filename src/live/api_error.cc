// SPDX-License-Identifier: Apache-2.0
#include "live/api_error.h"

#include <string>
#include <string_view>

#include "base/json.h"
#include "live/http_server.h"

namespace dynosim::live {

std::string_view ErrorType(int status) {
  switch (status) {
    case 400:
    case 413:
      return "BadRequestError";
    case 401:
      return "AuthenticationError";
    case 404:
      return "NotFoundError";
    case 405:
      return "MethodNotAllowedError";
    case 429:
      return "RateLimitError";
    case 503:
      return "ServiceUnavailableError";
    case 529:
      return "OverloadedError";
    default:
      return status < 500 ? "BadRequestError" : "InternalServerError";
  }
}

std::string ErrorBody(const ApiError& error) {
  Json inner;
  inner.Add("message", error.message);
  inner.Add("type", std::string(ErrorType(error.status)));
  inner.Add("param", error.param.empty() ? Json() : Json(error.param));
  inner.Add("code", error.status);
  Json body;
  body.Add("error", std::move(inner));
  body.Add("message", error.message);
  body.Add("type", std::string(HttpReason(error.status)));
  body.Add("code", error.status);
  return DumpJson(body);
}

}  // namespace dynosim::live
