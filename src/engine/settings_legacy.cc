// SPDX-License-Identifier: Apache-2.0
// Older names of the flat form, and the options of live serving.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/decode.h"
#include "engine/settings.h"
#include "engine/settings_decode.h"
#include "engine/settings_draft.h"

namespace dynosim::engine {
namespace {

using config::Choice;
using config::Decoder;

constexpr std::array kQueuePolicies = {Choice<RouterQueuePolicy>{"fcfs", RouterQueuePolicy::kFcfs},
                                       Choice<RouterQueuePolicy>{"lcfs", RouterQueuePolicy::kLcfs},
                                       Choice<RouterQueuePolicy>{"wspt", RouterQueuePolicy::kWspt}};

constexpr std::string_view kLive =
    "is refused: it belongs to live serving, which is not available in this version";

constexpr std::array<std::string_view, 13> kPerformanceModel = {
    "aic_backend",    "aic_system",      "aic_backend_version", "aic_tp_size",
    "aic_model_path", "aic_moe_tp_size", "aic_moe_ep_size",     "aic_attention_dp_size",
    "aic_gemm_dtype", "aic_moe_dtype",   "aic_fmha_dtype",      "aic_kv_cache_dtype",
    "aic_comm_dtype"};

// Boolean forms of worker_type.
void RoleFlags(Decoder& v, EngineSettings& s) {
  bool prefill = false;
  bool decode = false;
  v.Field("is_prefill", prefill);
  v.Field("is_decode", decode);
  if (v.Has("worker_type") && (v.Has("is_prefill") || v.Has("is_decode"))) {
    v.Fail("worker_type", "cannot be combined with is_prefill or is_decode");
  }
  if (prefill && decode) {
    v.Fail("is_prefill", "and is_decode cannot both be true");
  }
  if (prefill || decode) {
    s.worker_role = prefill ? WorkerRole::kPrefill : WorkerRole::kDecode;
  }
}

void Reasoning(Decoder& v) {
  std::uint32_t token = 0;
  double ratio = 0.0;
  for (const std::string_view name :
       {"start_thinking_token_id", "end_thinking_token_id", "thinking_ratio"}) {
    v.Require(name);
  }
  v.Field("start_thinking_token_id", token);
  v.Field("end_thinking_token_id", token);
  v.Field("thinking_ratio", ratio, config::kShare);
}

}  // namespace

void LegacyFields(Decoder& v, SettingsDraft& draft) {
  if (v.Has("engine_type") && v.Has("backend")) {
    v.Fail("engine_type", "is another name of backend; give one of them");
  }
  constexpr std::array kEngineTypes = {Choice<Backend>{"vllm", Backend::kVllm},
                                       Choice<Backend>{"sglang", Backend::kSglang},
                                       Choice<Backend>{"trtllm", Backend::kTrtllm}};
  v.Field("engine_type", draft.settings.backend, kEngineTypes);
  RoleFlags(v, draft.settings);
  for (const std::string_view name : kPerformanceModel) {
    v.Refuse(name,
             "is refused: give timing_model "
             "{\"type\":\"external\",\"provider\":\"ais\",\"config\":{...}}");
  }
}

std::string_view RouterQueuePolicyName(RouterQueuePolicy policy) {
  return std::ranges::find(kQueuePolicies, policy, &Choice<RouterQueuePolicy>::value)->name;
}

void DynamoFields(Decoder& v, SettingsDraft& draft) {
  bool local_indexer = false;
  v.Field("enable_local_indexer", local_indexer);
  if (local_indexer) {
    v.Fail("enable_local_indexer", std::string(kLive));
  }
  constexpr std::uint64_t kDefaultTimeout = 300'000;
  std::uint64_t timeout_ms = kDefaultTimeout;
  v.Field("handoff_session_timeout_ms", timeout_ms, config::kPositive);
  if (timeout_ms != kDefaultTimeout) {
    v.Fail("handoff_session_timeout_ms", std::string(kLive));
  }
  for (const std::string_view name : {"bootstrap_port", "zmq_kv_events_port", "zmq_replay_port"}) {
    std::optional<std::uint16_t> port;
    v.Field(name, port);
    if (port) {
      v.Fail(name, std::string(kLive));
    }
  }
  if (const Json* reasoning = v.Raw("reasoning"); reasoning != nullptr && !reasoning->is_null()) {
    v.Object("reasoning", Reasoning);
    v.Fail("reasoning", std::string(kLive));
  }
  std::optional<std::string> path;
  v.Field("response_replay_trace_path", path);
  if (path) {
    v.Fail("response_replay_trace_path", std::string(kLive));
  }
  if (const Json* policy = v.Raw("router_queue_policy"); policy != nullptr && !policy->is_null()) {
    RouterQueuePolicy chosen = RouterQueuePolicy::kFcfs;
    v.Field("router_queue_policy", chosen, kQueuePolicies);
    draft.settings.router_queue_policy = chosen;
  }
}

}  // namespace dynosim::engine
