// SPDX-License-Identifier: Apache-2.0
// Values that do not apply (empty optionals) are left out of flags, and null in the engine object.
#include "report/configuration.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "base/json.h"
#include "engine/settings.h"
#include "engine/settings_decode.h"
#include "router/config.h"
#include "scenario/scenario.h"
#include "workload/spec.h"

namespace dynosim::report {
namespace {

template <class T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <class T>
void AddIfSet(Json& json, std::string key, const std::optional<T>& value) {
  if (value) {
    json.Add(std::move(key), *value);
  }
}

Json Limit(std::uint64_t value) { return value == engine::kUnlimited ? Json() : Json(value); }

// Shortest decimals, comma-separated: "0.85,0.3".
std::string AcceptRatesText(const engine::EngineSettings& settings) {
  std::string text;
  for (const double rate : settings.accept_rates) {
    text += text.empty() ? "" : ",";
    text += fmt::format("{}", rate);
  }
  return text;
}

Json SglangJson(const engine::SglangSettings& settings) {
  Json json;
  json.Add("schedule_policy",
           settings.schedule_policy == engine::SglangPolicy::kLpm ? "lpm" : "fifo");
  json.Add("max_prefill_tokens", settings.max_prefill_tokens);
  json.Add("chunked_prefill_size", settings.chunked_prefill_size);
  json.Add("clip_max_new_tokens", settings.clip_max_new_tokens);
  json.Add("schedule_conservativeness", settings.schedule_conservativeness);
  return json;
}

void AddSpeculation(Json& json, const engine::EngineSettings& settings) {
  const bool speculative = settings.speculative_tokens > 0;
  json.Add("aic_nextn", speculative ? Json(settings.speculative_tokens) : Json());
  json.Add("aic_nextn_accept_rates", speculative ? Json(AcceptRatesText(settings)) : Json());
  json.Add("aic_mtp_seed", settings.speculative_seed);
}

void AddTransfer(Json& json, const engine::EngineSettings& settings) {
  json.Add("emit_kv_events", settings.emit_kv_events);
  json.Add("emit_kv_token_ids", settings.emit_kv_token_ids);
  json.Add("kv_transfer_bytes_per_token", OrNull(settings.kv_transfer_bytes_per_token));
  AddIfSet(json, "kv_cache_bytes_per_token", settings.kv_cache_bytes_per_token);
  json.Add("kv_transfer_bandwidth", OrNull(settings.kv_transfer_bandwidth_gbps));
  json.Add("kv_transfer_timing_mode",
           settings.kv_transfer_timing == engine::TransferTiming::kDestinationMissing
               ? "destination_missing"
               : "full_prompt");
}

Json CoreJson(const engine::EngineSettings& settings) {
  Json json;
  json.Add("backend", engine::BackendName(settings.backend));
  json.Add("num_gpu_blocks", settings.num_gpu_blocks);
  json.Add("block_size", settings.block_size);
  json.Add("max_model_len", OrNull(settings.max_model_len));
  json.Add("max_num_seqs", Limit(settings.max_num_seqs));
  json.Add("max_num_batched_tokens", Limit(settings.max_num_batched_tokens));
  json.Add("prefill_schedule_interval", settings.prefill_schedule_interval);
  json.Add("prefill_decode_interval", settings.prefill_decode_interval);
  json.Add("enable_prefix_caching", settings.enable_prefix_caching);
  json.Add("enable_chunked_prefill", settings.enable_chunked_prefill);
  json.Add("speedup_ratio", settings.speedup_ratio);
  json.Add("decode_speedup_ratio", settings.decode_speedup_ratio);
  AddSpeculation(json, settings);
  json.Add("worker_type", engine::WorkerRoleName(settings.worker_role));
  json.Add("preemption_mode",
           settings.preemption_mode == engine::PreemptionMode::kFifo ? "fifo" : "lifo");
  AddTransfer(json, settings);
  json.Add("timing_model", settings.timing_config);
  json.Add("sglang", SglangJson(settings.sglang));
  Json trtllm;
  trtllm.Add("capacity_scheduler_policy", "guaranteed_no_evict");
  json.Add("trtllm", std::move(trtllm));
  return json;
}

void AddSynthetic(Json& json, const workload::SyntheticSpec& spec) {
  json.Add("input_tokens", spec.input_tokens);
  json.Add("output_tokens", spec.output_tokens);
  json.Add("request_count", spec.request_count);
  AddIfSet(json, "request_rate", spec.request_rate);
  AddIfSet(json, "arrival_interval_ms", spec.arrival_interval_ms);
  json.Add("arrival_seed", spec.arrival_seed);
  json.Add("turns_per_session", spec.turns_per_session);
  json.Add("shared_prefix_ratio", spec.shared_prefix_ratio);
  json.Add("num_prefix_groups", spec.num_prefix_groups);
  json.Add("inter_turn_delay_ms", spec.inter_turn_delay_ms);
  if (spec.session_prompts == workload::SessionPrompts::kCumulative) {
    json.Add("session_prompts", "cumulative");
  }
}

void AddTrace(Json& json, const workload::TraceSpec& spec) {
  Json::Array files;
  for (const std::string& file : spec.files) {
    files.emplace_back(file);
  }
  json.Add("trace_files", std::move(files));
  json.Add("trace_format", spec.format);
  AddIfSet(json, "trace_block_size", spec.block_size);
  if (spec.format == "applied_compute_agentic") {
    json.Add("trace_shared_prefix_ratio", spec.shared_prefix_ratio);
    json.Add("trace_num_prefix_groups", spec.num_prefix_groups);
  }
  AddIfSet(json, "execution_model", spec.execution_model);
  AddIfSet(json, "agentic_lanes", spec.agentic_lanes);
  AddIfSet(json, "weka_nested_timestamp_basis", spec.weka_nested_timestamp_basis);
}

void AddTopology(Json& json, const scenario::Scenario& scenario) {
  if (scenario.prefill_engine && scenario.decode_engine) {
    json.Add("num_prefill_workers", scenario.num_prefill_workers);
    json.Add("num_decode_workers", scenario.num_decode_workers);
    json.Add("prefill_engine_args", EngineJson(*scenario.prefill_engine));
    json.Add("decode_engine_args", EngineJson(*scenario.decode_engine));
  } else {
    json.Add("num_workers", scenario.num_workers);
    json.Add("extra_engine_args", EngineJson(scenario.engine));
  }
}

void AddRouter(Json& json, const scenario::Scenario& scenario) {
  const router::RouterSettings& router = scenario.router;
  json.Add("router_mode", router.mode);
  if (router.mode == "kv_router") {
    json.Add("router_config",
             router.kv_config.is_object() ? router.kv_config : Json(Json::Object()));
    if (router.kv_config.Find("router_policy_config") == nullptr &&
        !router.kv.policy_config.empty()) {
      json.Add("router_policy_config", router.kv.policy_config);
    }
    if (!router.model_name.empty()) {
      json.Add("model_name", router.model_name);
    }
    json.Add("kv_event_lag_ms", router.kv_event_lag_ms);
  }
  if (router.mode != "round_robin") {
    json.Add("router_seed", router.seed);
  }
  if (!scenario.placements_path.empty()) {
    json.Add("placements", scenario.placements_path);
  }
  if (router.capture_candidates) {
    json.Add("capture_routing", true);
  }
}

}  // namespace

Json EngineJson(const engine::EngineSettings& settings) {
  Json json;
  json.Add("engine", CoreJson(settings));
  json.Add("dp_size", settings.dp_size);
  json.Add("tensor_parallel_size", settings.tensor_parallel_size);
  if (settings.pipeline_parallel_size != 1) {
    json.Add("pipeline_parallel_size", settings.pipeline_parallel_size);
  }
  json.Add("startup_time", OrNull(settings.startup_time_s));
  json.Add("num_gpu_blocks_is_explicit", settings.num_gpu_blocks_is_explicit);
  if (settings.router_queue_policy) {
    Json dynamo;
    dynamo.Add("router_queue_policy", engine::RouterQueuePolicyName(*settings.router_queue_policy));
    json.Add("dynamo", std::move(dynamo));
  }
  return json;
}

Json ConfigurationJson(const scenario::Scenario& scenario) {
  Json json;
  const workload::WorkloadSpec& workload = scenario.workload;
  if (workload.trace) {
    AddTrace(json, *workload.trace);
  }
  if (workload.synthetic) {
    AddSynthetic(json, *workload.synthetic);
  }
  AddIfSet(json, "replay_concurrency", workload.replay_concurrency);
  json.Add("arrival_speedup_ratio", workload.arrival_speedup_ratio);
  json.Add("replay_mode", scenario.online ? "online" : "offline");
  AddRouter(json, scenario);
  AddTopology(json, scenario);
  AddIfSet(json, "max_sim_time_ms", scenario.max_sim_time_ms);
  AddIfSet(json, "sla_ttft_ms", scenario.goodput.ttft_ms);
  AddIfSet(json, "sla_itl_ms", scenario.goodput.itl_ms);
  AddIfSet(json, "sla_e2e_ms", scenario.goodput.e2e_ms);
  json.Add("capture_per_request", scenario.capture_per_request);
  json.Add("capture_telemetry", scenario.telemetry.capture);
  if (scenario.telemetry.enabled() && !scenario.telemetry.fits_page) {
    json.Add("telemetry_sample_interval_ms", scenario.telemetry.sample_interval_ms);
  }
  return json;
}

}  // namespace dynosim::report
