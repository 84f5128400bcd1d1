// SPDX-License-Identifier: Apache-2.0
// Settings of a router: which policy, its seed, and the fields of the KV router (chapter 70, 5.3).
// Decoded and checked. Of the fields that only matter for live routers, those that no router here
// uses are checked and then forgotten.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "router/policy_profile.h"

namespace dynosim::router {

// The mode that most router fields belong to.
inline constexpr std::string_view kKvRouter = "kv_router";

struct KvRouterConfig {
  double overlap_score_credit = 1.0;
  double overlap_score_credit_decay = 0.0;
  double prefill_load_scale = 1.0;
  double decode_active_request_weight = 0.0;
  double temperature = 0.0;
  bool track_active_blocks = true;
  bool assume_kv_reuse = true;
  bool track_prefill_tokens = true;
  bool predict_prefill = false;  // prompt tokens count down as their predicted time passes
  std::optional<double> queue_threshold{};
  QueuePolicy queue_policy = QueuePolicy::kFcfs;
  std::string policy_config{};  // path of a policy file, empty without one
  // How a live router learns what is cached (chapter 70, 11); a replay always uses the events.
  bool use_kv_events = true;
  bool lru_cache = false;  // without events: an LRU cache of the target's size, not a time to live
  double ttl_secs = 120.0;
  std::optional<double> predicted_ttl_secs{};
};

// Nanoseconds of the prefill of one request: its tokens to compute, behind its cached ones. Nothing
// where it cannot be predicted.
using PrefillNanos =
    std::function<std::optional<std::uint64_t>(std::uint64_t tokens, std::uint64_t cached)>;

struct RouterSettings {
  std::string mode = "round_robin";
  std::uint64_t seed = 42;
  KvRouterConfig kv{};
  Json kv_config{};                        // as the user gave it, for reports
  std::optional<PolicyProfile> profile{};  // of the policy file
  std::string model_name{};                // selects a profile of the policy file
  double kv_event_lag_ms = 0.0;
  bool capture_candidates = false;  // decisions carry all candidates
  PrefillNanos prefill_ns{};        // set when kv.predict_prefill is
  bool live = false;                // the fields for live routers count
};

// `where` names the flag for error messages.
Result<KvRouterConfig> DecodeKvRouterConfig(const Json& value, std::string_view where);

// JSON schema of its fields. Those without a description change nothing in a replay.
Json KvRouterConfigSchema();

// Configurations of the two routers of a prefill/decode run (chapter 70, section 9.1).
KvRouterConfig PrefillPoolConfig(KvRouterConfig config);
KvRouterConfig DecodePoolConfig(KvRouterConfig config);

}  // namespace dynosim::router
