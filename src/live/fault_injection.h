// SPDX-License-Identifier: Apache-2.0
// Faults on request: a share of the requests fails in one of the chosen ways, and a client can ask
// for a given status with the header X-Return-Error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "live/api_error.h"

namespace dynosim::live {

class FaultInjection {
 public:
  // `rate_percent` from 0 to 100; `kinds` are names of FaultKinds(), all of them when empty.
  static Result<FaultInjection> Make(double rate_percent, const std::vector<std::string>& kinds,
                                     std::uint64_t seed);
  FaultInjection() : random_(0) {}

  // The fault of the next request. `asked` is the header, empty when absent.
  std::optional<ApiError> Next(std::string_view asked);

 private:
  double rate_ = 0.0;  // 0 to 1
  std::vector<std::size_t> kinds_;
  ChaCha12 random_;
};

// "rate_limit, invalid_api_key, ..."
std::string FaultKindNames();

}  // namespace dynosim::live
