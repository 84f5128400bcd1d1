// SPDX-License-Identifier: Apache-2.0
#include "scenario/engine_lowering.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/result.h"
#include "engine/settings.h"
#include "engine/settings_decode.h"
#include "scenario/engine_section.h"
#include "scenario/model_limits.h"
#include "scenario/scenario.h"

namespace dynosim::scenario {
namespace {

using engine::Backend;
using engine::EngineSettings;
using engine::WorkerRole;

// The key of the launch object that holds the share of the memory.
std::string_view FractionKey(Backend backend) {
  switch (backend) {
    case Backend::kVllm:
      return "gpu_memory_utilization";
    case Backend::kSglang:
      return "mem_fraction_static";
    case Backend::kTrtllm:
      return "free_gpu_memory_fraction";
  }
  return "";
}

Json TimingJson(const EngineSection& e, const WorkerSection& w, WorkerRole role) {
  Json timing;
  switch (w.timing.type) {
    case TimingType::kPolynomial:
      timing.Add("type", "polynomial");
      return timing;
    case TimingType::kFixed:
      timing.Add("type", "fixed");
      timing.Add("prefill_ms", w.timing.prefill_ms);
      timing.Add("decode_ms", w.timing.decode_ms);
      return timing;
    case TimingType::kDefault:
      break;
  }
  Json config;
  config.Add("model", e.model);
  config.Add("system", e.hardware);
  config.Add("backend", engine::BackendName(e.backend));
  config.Add("worker_type", engine::WorkerRoleName(role));
  if (e.backend_version) {
    config.Add("backend_version", *e.backend_version);
  }
  config.Add("tp", w.parallelism.tensor);
  config.Add("pp", w.parallelism.pipeline);
  config.Add("attention_dp", w.parallelism.attention_data);
  config.Add("moe_tp_size", w.parallelism.moe_tensor);
  config.Add("moe_ep_size", w.parallelism.moe_expert);
  timing.Add("type", "external");
  timing.Add("provider", "ais");
  timing.Add("config", std::move(config));
  return timing;
}

// Blocks of a rank when the document fixes them.
Result<std::optional<std::uint64_t>> FixedBlocks(const KvCacheSection& kv, std::uint64_t block_size,
                                                 const std::string& where) {
  const CapacitySection& capacity = kv.capacity;
  if (capacity.type == CapacityType::kDefault || capacity.blocks) {
    return capacity.blocks;
  }
  if (!kv.bytes_per_token) {
    return UsageError(where, "kv_cache.capacity.bytes: needs kv_cache.bytes_per_token as a number");
  }
  const std::uint64_t blocks = *capacity.bytes / *kv.bytes_per_token / block_size;
  if (blocks == 0) {
    return UsageError(where, "kv_cache.capacity.bytes: " + std::to_string(*capacity.bytes) +
                                 " is less than one block of " + std::to_string(block_size) +
                                 " tokens of " + std::to_string(*kv.bytes_per_token) + " bytes");
  }
  return blocks;
}

Json EngineJson(const EngineSection& e, const WorkerSection& w, WorkerRole role) {
  Json json;
  json.Add("backend", engine::BackendName(e.backend));
  json.Add("worker_type", engine::WorkerRoleName(role));
  json.Add("block_size", w.kv_cache.block_size.value_or(DefaultBlockSize(e.backend)));
  json.Add("max_num_seqs", w.scheduler.max_sequences);
  json.Add("max_num_batched_tokens", w.scheduler.max_batched_tokens);
  json.Add("prefill_schedule_interval", w.scheduler.prefill_schedule_interval);
  json.Add("prefill_decode_interval", w.scheduler.prefill_decode_interval);
  json.Add("enable_prefix_caching", w.kv_cache.prefix_caching);
  if (w.kv_cache.bytes_per_token) {
    json.Add("kv_cache_bytes_per_token", *w.kv_cache.bytes_per_token);
  }
  if (e.kv_transfer) {
    const TransferSection& t = *e.kv_transfer;
    if (t.bandwidth_gb_per_second) {
      json.Add("kv_transfer_bandwidth", *t.bandwidth_gb_per_second);
    }
    if (t.bytes_per_token) {
      json.Add("kv_transfer_bytes_per_token", *t.bytes_per_token);
    }
    json.Add("kv_transfer_timing_mode", t.timing_mode == engine::TransferTiming::kFullPrompt
                                            ? "full_prompt"
                                            : "destination_missing");
  }
  json.Add("timing_model", TimingJson(e, w, role));
  return json;
}

Result<EngineSettings> MakeEngine(const EngineSection& e, const WorkerSection& w, WorkerRole role,
                                  std::optional<std::uint64_t> context_length,
                                  const std::string& document) {
  const std::string where =
      document + ": engine.workers." + std::string(engine::WorkerRoleName(role));
  const std::uint64_t block_size = w.kv_cache.block_size.value_or(DefaultBlockSize(e.backend));
  DYNO_TRY(const std::optional<std::uint64_t> blocks, FixedBlocks(w.kv_cache, block_size, where));
  Json engine = EngineJson(e, w, role);
  if (blocks) {
    engine.Add("num_gpu_blocks", *blocks);
  }
  if (context_length) {
    engine.Add("max_model_len", *context_length);
  }
  Json launch;
  launch.Add("engine", std::move(engine));
  launch.Add("dp_size", w.parallelism.attention_data);
  launch.Add("tensor_parallel_size", w.parallelism.tensor);
  if (w.startup_seconds > 0.0) {
    launch.Add("startup_time", w.startup_seconds);
  }
  if (!blocks && w.kv_cache.capacity.memory_fraction) {
    launch.Add(std::string(FractionKey(e.backend)), *w.kv_cache.capacity.memory_fraction);
  }
  return engine::DecodeEngineSettings(launch, where);
}

// vLLM is told the model's own limit; the other two take only a given one.
Result<std::optional<std::uint64_t>> ContextLength(const EngineSection& e,
                                                   const std::string& document) {
  if (e.context_length || e.backend != Backend::kVllm) {
    return e.context_length;
  }
  auto length = MaxContextLength(e.model);
  if (!length) {
    return FailedError(document + ": engine.model", length.error().Text());
  }
  return *length;
}

}  // namespace

Result<void> MakeEngines(const EngineSection& e, const std::string& where, Scenario& scenario) {
  DYNO_TRY(const std::optional<std::uint64_t> context_length, ContextLength(e, where));
  if (e.aggregated) {
    scenario.num_workers = e.aggregated->parallelism.replicas;
    DYNO_TRY(scenario.engine,
             MakeEngine(e, *e.aggregated, WorkerRole::kAggregated, context_length, where));
    return {};
  }
  scenario.num_prefill_workers = e.prefill->parallelism.replicas;
  scenario.num_decode_workers = e.decode->parallelism.replicas;
  DYNO_TRY(scenario.prefill_engine,
           MakeEngine(e, *e.prefill, WorkerRole::kPrefill, context_length, where));
  DYNO_TRY(scenario.decode_engine,
           MakeEngine(e, *e.decode, WorkerRole::kDecode, context_length, where));
  return {};
}

}  // namespace dynosim::scenario
