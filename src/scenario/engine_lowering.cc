// SPDX-License-Identifier: Apache-2.0
#include "scenario/engine_lowering.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/result.h"
#include "engine/settings.h"
#include "engine/settings_decode.h"
#include "scenario/engine_section.h"
#include "scenario/model_facts.h"
#include "scenario/scenario.h"
#include "timing/op_level/memory.h"
#include "timing/op_level/pass_model.h"

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

// A failure that is none of the document's form: the model, its data or its size.
Error AtPath(const std::string& where, const std::string& path, const Error& error) {
  return {.kind = ErrorKind::kFailed,
          .where = where + ": " + path,
          .message = error.where.empty() ? error.message : error.Text()};
}

// One role of the section as an engine configuration.
class Lowering {
 public:
  Lowering(const EngineSection& section, std::string where)
      : e_(section), where_(std::move(where)), facts_(section.model) {}

  Result<EngineSettings> Make(const WorkerSection& worker, WorkerRole role);
  // What every role needs; call it first.
  Result<void> Prepare();

 private:
  std::uint64_t BlockSize(const WorkerSection& w) const {
    return w.kv_cache.block_size.value_or(DefaultBlockSize(e_.backend));
  }
  timing::Deployment DeploymentOf(const WorkerSection& w) const;
  Json TimingJson(const WorkerSection& w, WorkerRole role) const;
  Json EngineJson(const WorkerSection& w, WorkerRole role) const;
  Result<std::optional<std::uint64_t>> Blocks(const WorkerSection& w) const;
  Result<std::uint64_t> BlocksOfBytes(const WorkerSection& w) const;
  Result<std::uint64_t> BlocksOfMemory(const WorkerSection& w) const;

  const EngineSection& e_;
  std::string where_;
  ModelFacts facts_;
  std::optional<std::uint64_t> context_length_;
  std::optional<std::uint64_t> transfer_bytes_;
  std::string path_;  // of the worker at hand
};

// vLLM is told the model's own limit; the other two take only a given one. A transfer counts bytes
// only when it takes time.
Result<void> Lowering::Prepare() {
  context_length_ = e_.context_length;
  if (!context_length_ && e_.backend == Backend::kVllm) {
    auto length = facts_.MaxContextLength();
    if (!length) {
      return std::unexpected(AtPath(where_, "engine.model", length.error()));
    }
    context_length_ = *length;
  }
  if (!e_.kv_transfer) {
    return {};
  }
  transfer_bytes_ = e_.kv_transfer->bytes_per_token;
  if (!transfer_bytes_ && e_.kv_transfer->bandwidth_gb_per_second) {
    auto bytes = facts_.TransferBytesPerToken(e_.prefill->parallelism.tensor);
    if (!bytes) {
      return std::unexpected(AtPath(where_, "engine.kv_transfer.bytes_per_token", bytes.error()));
    }
    transfer_bytes_ = *bytes;
  }
  return {};
}

timing::Deployment Lowering::DeploymentOf(const WorkerSection& w) const {
  timing::Deployment d;
  d.model = e_.model;
  d.system = e_.hardware;
  d.backend = engine::BackendName(e_.backend);
  d.backend_version = e_.backend_version.value_or("");
  d.tp = w.parallelism.tensor;
  d.pp = w.parallelism.pipeline;
  d.attention_dp = w.parallelism.attention_data;
  d.moe_tp = w.parallelism.moe_tensor;
  d.moe_ep = w.parallelism.moe_expert;
  return d;
}

Json Lowering::TimingJson(const WorkerSection& w, WorkerRole role) const {
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
  config.Add("model", e_.model);
  config.Add("system", e_.hardware);
  config.Add("backend", engine::BackendName(e_.backend));
  config.Add("worker_type", engine::WorkerRoleName(role));
  if (e_.backend_version) {
    config.Add("backend_version", *e_.backend_version);
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

Json Lowering::EngineJson(const WorkerSection& w, WorkerRole role) const {
  Json json;
  json.Add("backend", engine::BackendName(e_.backend));
  json.Add("worker_type", engine::WorkerRoleName(role));
  json.Add("block_size", BlockSize(w));
  json.Add("max_num_seqs", w.scheduler.max_sequences);
  json.Add("max_num_batched_tokens", w.scheduler.max_batched_tokens);
  json.Add("prefill_schedule_interval", w.scheduler.prefill_schedule_interval);
  json.Add("prefill_decode_interval", w.scheduler.prefill_decode_interval);
  json.Add("enable_prefix_caching", w.kv_cache.prefix_caching);
  if (context_length_) {
    json.Add("max_model_len", *context_length_);
  }
  if (w.kv_cache.bytes_per_token) {
    json.Add("kv_cache_bytes_per_token", *w.kv_cache.bytes_per_token);
  }
  if (e_.kv_transfer) {
    const TransferSection& t = *e_.kv_transfer;
    if (t.bandwidth_gb_per_second) {
      json.Add("kv_transfer_bandwidth", *t.bandwidth_gb_per_second);
    }
    if (transfer_bytes_) {
      json.Add("kv_transfer_bytes_per_token", *transfer_bytes_);
    }
    json.Add("kv_transfer_timing_mode", t.timing_mode == engine::TransferTiming::kFullPrompt
                                            ? "full_prompt"
                                            : "destination_missing");
  }
  json.Add("timing_model", TimingJson(w, role));
  return json;
}

// Absent when the timing model of the engine finds the size itself.
Result<std::optional<std::uint64_t>> Lowering::Blocks(const WorkerSection& w) const {
  const CapacitySection& capacity = w.kv_cache.capacity;
  if (capacity.blocks) {
    return capacity.blocks;
  }
  if (capacity.bytes) {
    DYNO_TRY(const std::uint64_t blocks, BlocksOfBytes(w));
    return blocks;
  }
  if (w.timing.type == TimingType::kDefault) {
    return std::nullopt;
  }
  DYNO_TRY(const std::uint64_t blocks, BlocksOfMemory(w));
  return blocks;
}

Result<std::uint64_t> Lowering::BlocksOfBytes(const WorkerSection& w) const {
  const std::uint64_t bytes = *w.kv_cache.capacity.bytes;
  std::uint64_t per_token = w.kv_cache.bytes_per_token.value_or(0);
  if (per_token == 0) {
    auto found = facts_.CacheBytesPerToken(DeploymentOf(w));
    if (!found) {
      return std::unexpected(AtPath(where_, path_ + ".kv_cache.bytes_per_token", found.error()));
    }
    per_token = *found;
  }
  const std::uint64_t blocks = bytes / per_token / BlockSize(w);
  if (blocks == 0) {
    return UsageError(where_ + ": " + path_ + ".kv_cache.capacity.bytes",
                      std::to_string(bytes) + " is less than one block of " +
                          std::to_string(BlockSize(w)) + " tokens of " + std::to_string(per_token) +
                          " bytes");
  }
  return blocks;
}

Result<std::uint64_t> Lowering::BlocksOfMemory(const WorkerSection& w) const {
  const std::string path = path_ + ".kv_cache.capacity";
  const auto model = timing::PassModel::Make(DeploymentOf(w), facts_.catalog());
  if (!model) {
    return std::unexpected(AtPath(where_, path, model.error()));
  }
  const auto found =
      timing::FindCapacity(**model, {.block_size = BlockSize(w),
                                     .max_batched_tokens = w.scheduler.max_batched_tokens,
                                     .max_requests = w.scheduler.max_sequences,
                                     .memory_fraction = w.kv_cache.capacity.memory_fraction});
  if (!found) {
    return std::unexpected(AtPath(where_, path, found.error()));
  }
  return found->blocks;
}

// An error of the engine configuration in the terms of the document.
Error InTermsOfWorker(Error error, const std::string& where, const std::string& path) {
  struct Renamed {
    std::string_view prefix;
    std::string_view path;
  };
  constexpr std::array kRenamed = {Renamed{"engine.timing_model.config: ", ".timing"},
                                   Renamed{"num_gpu_blocks: ", ".kv_cache.capacity"}};
  for (const Renamed& renamed : kRenamed) {
    if (error.message.starts_with(renamed.prefix)) {
      return {.kind = ErrorKind::kFailed,
              .where = where + ": " + path + std::string(renamed.path),
              .message = error.message.substr(renamed.prefix.size())};
    }
  }
  return error;
}

Result<EngineSettings> Lowering::Make(const WorkerSection& w, WorkerRole role) {
  path_ = "engine.workers." + std::string(engine::WorkerRoleName(role));
  DYNO_TRY(const std::optional<std::uint64_t> blocks, Blocks(w));
  Json engine = EngineJson(w, role);
  if (blocks) {
    engine.Add("num_gpu_blocks", *blocks);
  }
  Json launch;
  launch.Add("engine", std::move(engine));
  launch.Add("dp_size", w.parallelism.attention_data);
  launch.Add("tensor_parallel_size", w.parallelism.tensor);
  launch.Add("pipeline_parallel_size", w.parallelism.pipeline);
  if (w.startup_seconds > 0.0) {
    launch.Add("startup_time", w.startup_seconds);
  }
  if (!blocks && w.kv_cache.capacity.memory_fraction) {
    launch.Add(std::string(FractionKey(e_.backend)), *w.kv_cache.capacity.memory_fraction);
  }
  auto settings = engine::DecodeEngineSettings(launch, where_ + ": " + path_);
  if (!settings) {
    return std::unexpected(InTermsOfWorker(std::move(settings).error(), where_, path_));
  }
  return settings;
}

}  // namespace

Result<void> MakeEngines(const EngineSection& e, const std::string& where, Scenario& scenario) {
  Lowering lowering(e, where);
  DYNO_TRY_VOID(lowering.Prepare());
  if (e.aggregated) {
    scenario.num_workers = e.aggregated->parallelism.replicas;
    DYNO_TRY(scenario.engine, lowering.Make(*e.aggregated, WorkerRole::kAggregated));
    return {};
  }
  scenario.num_prefill_workers = e.prefill->parallelism.replicas;
  scenario.num_decode_workers = e.decode->parallelism.replicas;
  DYNO_TRY(scenario.prefill_engine, lowering.Make(*e.prefill, WorkerRole::kPrefill));
  DYNO_TRY(scenario.decode_engine, lowering.Make(*e.decode, WorkerRole::kDecode));
  return {};
}

}  // namespace dynosim::scenario
