// SPDX-License-Identifier: Apache-2.0
#include "scenario/prefill_estimate.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "router/config.h"
#include "timing/ais.h"
#include "timing/model.h"

namespace dynosim::scenario {
namespace {

constexpr std::array kFlags = {
    PerfModelFlag{"--aic-backend", "backend", false},
    PerfModelFlag{"--aic-system", "system", false},
    PerfModelFlag{"--aic-model-path", "model", false},
    PerfModelFlag{"--aic-backend-version", "backend_version", false},
    PerfModelFlag{"--aic-tp-size", "tp", true},
    PerfModelFlag{"--aic-moe-tp-size", "moe_tp_size", true},
    PerfModelFlag{"--aic-moe-ep-size", "moe_ep_size", true},
    PerfModelFlag{"--aic-attention-dp-size", "attention_dp", true},
    PerfModelFlag{"--aic-gemm-dtype", "gemm_quant_mode", false},
    PerfModelFlag{"--aic-moe-dtype", "moe_quant_mode", false},
    PerfModelFlag{"--aic-fmha-dtype", "fmha_quant_mode", false},
    PerfModelFlag{"--aic-kv-cache-dtype", "kvcache_quant_mode", false},
    PerfModelFlag{"--aic-comm-dtype", "comm_quant_mode", false},
    PerfModelFlag{"--aic-nextn", "nextn", true},
};

Result<Json> ValueOf(const PerfModelFlag& flag, const std::string& text) {
  if (!flag.number) {
    return Json(text);
  }
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) {
    return UsageError(flag.name, "must be a whole number, got '" + text + "'");
  }
  return Json(number);
}

}  // namespace

std::span<const PerfModelFlag> PerfModelFlags() { return kFlags; }

Result<router::PrefillNanos> PrefillEstimateOfFlags(
    const std::vector<std::pair<std::string, std::string>>& given) {
  Json config;
  for (const PerfModelFlag& flag : kFlags) {
    const auto value =
        std::ranges::find(given, flag.name, &std::pair<std::string, std::string>::first);
    if (value != given.end()) {
      DYNO_TRY(Json json, ValueOf(flag, value->second));
      config.Add(flag.field, std::move(json));
    }
  }
  for (const PerfModelFlag& flag : std::span(kFlags).first(3)) {
    if (config.Find(flag.field) == nullptr) {
      return UsageError(flag.name,
                        "is required with router_prefill_load_model ais, as are --aic-backend, "
                        "--aic-system and --aic-model-path together");
    }
  }
  DYNO_TRY(const timing::AisConfig decoded, timing::DecodeAisConfig(config, "--aic", "--aic-*"));
  DYNO_TRY(MeasuredTiming timing, timing::AisTiming::Make(decoded));
  return PrefillEstimateOf(std::move(timing));
}

router::PrefillNanos PrefillEstimateOf(MeasuredTiming timing) {
  return [timing = std::move(timing)](std::uint64_t tokens,
                                      std::uint64_t cached) -> std::optional<std::uint64_t> {
    const std::uint64_t nanos = NanosFromMillis(
        timing->PrefillMs({.requests = 1, .mean_new = tokens, .mean_prefix = cached}));
    return nanos == kNoNanos ? std::nullopt : std::optional(nanos);
  };
}

}  // namespace dynosim::scenario
