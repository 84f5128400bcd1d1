// SPDX-License-Identifier: Apache-2.0
#include "scenario/router_flags.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "base/json_argument.h"
#include "base/result.h"
#include "engine/settings.h"
#include "router/config.h"
#include "router/policy_profile.h"
#include "router/registry.h"
#include "scenario/placements.h"
#include "scenario/prefill_estimate.h"
#include "scenario/replay_flags.h"
#include "scenario/scenario.h"

namespace dynosim::scenario {
namespace {

constexpr std::string_view kConfigFlag = "--router-config";

using Text = ReplayFlags::Text;

template <class T>
std::optional<T> Parse(const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end ? std::optional(value) : std::nullopt;
}

// Flags that the policy does not know are refused.
Result<void> CheckMode(const ReplayFlags& f, const std::string& mode) {
  const router::Policy* policy = router::FindPolicy(mode);
  if (policy == nullptr) {
    return UsageError("--router-mode", "must be " + router::PolicyNames() + ", got '" + mode + "'");
  }
  const std::pair<std::string_view, bool> flags[] = {
      {"--kv-event-lag-ms", f.kv_event_lag_ms.has_value()},
      {kConfigFlag, f.router_config.has_value()},
      {"--router-policy-config", f.router_policy_config.has_value()},
      {"--model-name", f.model_name.has_value()}};
  for (const auto& [name, given] : flags) {
    if (given && mode != router::kKvRouter) {
      return UsageError(std::string(name),
                        "only applies to --router-mode kv_router, got '" + mode + "'");
    }
  }
  if (f.router_seed && !policy->draws) {
    return UsageError("--router-seed", "does not apply: " + mode + " draws no random numbers");
  }
  if (f.capture_routing && !policy->compares) {
    return UsageError("--capture-routing", "does not apply: " + mode + " compares no targets");
  }
  return {};
}

// The engine's own order of the router queue is nothing without that queue.
Result<void> CheckEngines(const Scenario& scenario) {
  const std::pair<std::string_view, const engine::EngineSettings*> engines[] = {
      {"--extra-engine-args", scenario.disaggregated() ? nullptr : &scenario.engine},
      {"--prefill-engine-args", scenario.prefill_engine ? &*scenario.prefill_engine : nullptr},
      {"--decode-engine-args", scenario.decode_engine ? &*scenario.decode_engine : nullptr}};
  for (const auto& [flag, engine] : engines) {
    if (engine != nullptr && engine->router_queue_policy &&
        scenario.router.mode != router::kKvRouter) {
      return UsageError(std::string(flag),
                        "dynamo.router_queue_policy only applies to --router-mode kv_router");
    }
  }
  return {};
}

Result<void> ReadSeed(const ReplayFlags& f, router::RouterSettings& r) {
  if (f.router_seed) {
    const auto seed = Parse<std::uint64_t>(*f.router_seed);
    if (!seed) {
      return UsageError("--router-seed", "must be an integer >= 0, got '" + *f.router_seed + "'");
    }
    r.seed = *seed;
  }
  return {};
}

Result<void> ReadLag(const ReplayFlags& f, router::RouterSettings& r) {
  if (f.kv_event_lag_ms) {
    const auto lag = Parse<double>(*f.kv_event_lag_ms);
    if (!lag || !std::isfinite(*lag) || *lag < 0.0) {
      return UsageError("--kv-event-lag-ms",
                        "must be a finite number >= 0, got '" + *f.kv_event_lag_ms + "'");
    }
    r.kv_event_lag_ms = *lag;
  }
  return {};
}

Result<void> ReadKvConfig(const ReplayFlags& f, router::RouterSettings& r) {
  DYNO_TRY(r.kv_config, JsonOfArgument(kConfigFlag, f.router_config.value_or("{}")));
  DYNO_TRY(r.kv, router::DecodeKvRouterConfig(r.kv_config, kConfigFlag));
  if (f.router_policy_config && !r.kv.policy_config.empty()) {
    return UsageError("--router-policy-config",
                      "cannot be combined with router_policy_config in --router-config");
  }
  const Text& file = f.router_policy_config ? f.router_policy_config : f.router_policy_default;
  if (r.kv.policy_config.empty()) {
    r.kv.policy_config = file.value_or("");
  }
  if (f.router_policy_config && f.router_policy_config->empty()) {
    return UsageError("--router-policy-config", "must not be empty");
  }
  if (f.model_name && f.model_name->empty()) {
    return UsageError("--model-name", "must not be empty");
  }
  r.model_name = f.model_name.value_or("");
  if (r.kv.policy_config.empty()) {
    if (f.model_name) {
      return UsageError("--model-name",
                        "selects a profile of a policy file: it needs --router-policy-config");
    }
    return {};
  }
  DYNO_TRY(r.profile, router::LoadPolicyFile(r.kv.policy_config, r.model_name));
  return {};
}

// How long prefills take, when the router is to know.
Result<void> ReadPrefillModel(const ReplayFlags& f, router::RouterSettings& r) {
  if (r.kv.predict_prefill) {
    if (f.perf_model.empty()) {
      return UsageError(std::string(kConfigFlag),
                        "router_prefill_load_model ais needs a deployment: --aic-backend, "
                        "--aic-system and --aic-model-path");
    }
    DYNO_TRY(r.prefill_ns, PrefillEstimateOfFlags(f.perf_model));
  } else if (!f.perf_model.empty()) {
    return UsageError(f.perf_model.front().first,
                      "only applies with router_prefill_load_model ais in --router-config");
  }
  return {};
}

}  // namespace

Result<void> ReadRouterFlags(const ReplayFlags& flags, Scenario& scenario) {
  router::RouterSettings& r = scenario.router;
  r.mode = flags.router_mode.value_or(r.mode);
  DYNO_TRY_VOID(CheckMode(flags, r.mode));
  DYNO_TRY_VOID(CheckEngines(scenario));
  DYNO_TRY_VOID(ReadSeed(flags, r));
  DYNO_TRY_VOID(ReadLag(flags, r));
  if (r.mode == router::kKvRouter) {
    DYNO_TRY_VOID(ReadKvConfig(flags, r));
  }
  DYNO_TRY_VOID(ReadPrefillModel(flags, r));
  r.capture_candidates = flags.capture_routing;
  scenario.capture_per_request = scenario.capture_per_request || flags.capture_routing;
  if (flags.placements) {
    DYNO_TRY(scenario.placements, LoadPlacements(*flags.placements));
    scenario.placements_path = *flags.placements;
  }
  return {};
}

}  // namespace dynosim::scenario
