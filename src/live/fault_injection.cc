// SPDX-License-Identifier: Apache-2.0
#include "live/fault_injection.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "live/api_error.h"
#include "live/http_server.h"

namespace dynosim::live {

namespace {

struct FaultKind {
  std::string_view name;
  int status;
  std::string_view message;
};

constexpr std::array kKinds = {
    FaultKind{"rate_limit", 429, "Rate limit reached (injected fault)"},
    FaultKind{"invalid_api_key", 401, "Incorrect API key provided (injected fault)"},
    FaultKind{"context_length", 400, "The prompt exceeds the context length (injected fault)"},
    FaultKind{"server_error", 503, "The server is overloaded or not ready (injected fault)"},
    FaultKind{"invalid_request", 400, "Invalid request (injected fault)"},
    FaultKind{"model_not_found", 404, "The model does not exist (injected fault)"},
};

}  // namespace

std::string FaultKindNames() {
  std::string out;
  for (const FaultKind& kind : kKinds) {
    out += out.empty() ? "" : ", ";
    out += kind.name;
  }
  return out;
}

Result<FaultInjection> FaultInjection::Make(double rate_percent,
                                            const std::vector<std::string>& kinds,
                                            std::uint64_t seed) {
  FaultInjection out;
  out.rate_ = rate_percent / 100.0;
  out.random_ = ChaCha12(seed);
  for (const std::string& name : kinds) {
    const auto found = std::ranges::find(kKinds, name, &FaultKind::name);
    if (found == kKinds.end()) {
      return UsageError("--failure-types", "must be among " + FaultKindNames() + ", got " + name);
    }
    out.kinds_.push_back(static_cast<std::size_t>(found - kKinds.begin()));
  }
  if (kinds.empty()) {
    for (std::size_t i = 0; i < kKinds.size(); ++i) {
      out.kinds_.push_back(i);
    }
  }
  return out;
}

std::optional<ApiError> FaultInjection::Next(std::string_view asked) {
  if (!asked.empty()) {
    int status = 0;
    const auto [end, error] = std::from_chars(asked.data(), asked.data() + asked.size(), status);
    if (error != std::errc() || end != asked.data() + asked.size() || status < 400 ||
        status > 599) {
      return ApiError{
          .status = 400, .message = "X-Return-Error must be a status from 400 to 599", .param = {}};
    }
    return ApiError{
        .status = status, .message = "returned as the header X-Return-Error asked", .param = {}};
  }
  if (rate_ <= 0.0 || random_.NextUniform() >= rate_) {
    return std::nullopt;
  }
  const FaultKind& kind =
      kKinds[kinds_[random_.NextBelow(static_cast<std::uint32_t>(kinds_.size()))]];
  return ApiError{.status = kind.status, .message = std::string(kind.message), .param = {}};
}

}  // namespace dynosim::live
