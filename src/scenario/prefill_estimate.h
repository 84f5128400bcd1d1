// SPDX-License-Identifier: Apache-2.0
// How long the KV router takes a prefill to last, when it is to know (router_prefill_load_model
// ais): a prefill pass of one request by the measured kernels.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "router/config.h"
#include "timing/registry.h"

namespace dynosim::scenario {

// The flags of `replay` that describe the deployment, with the field of a timing configuration that
// each one sets.
struct PerfModelFlag {
  constexpr PerfModelFlag(const char* flag, const char* config_field, bool is_number)
      : name(flag), field(config_field), number(is_number) {}
  const char* name;
  const char* field;
  bool number;
};
std::span<const PerfModelFlag> PerfModelFlags();

// `given` are such flags with their values. Errors name the flag.
Result<router::PrefillNanos> PrefillEstimateOfFlags(
    const std::vector<std::pair<std::string, std::string>>& given);

// A pass of a model that is there already, rounded to whole nanoseconds.
using MeasuredTiming = decltype(timing::NamedTiming::ais);
router::PrefillNanos PrefillEstimateOf(MeasuredTiming timing);

}  // namespace dynosim::scenario
