// SPDX-License-Identifier: Apache-2.0
#include "cli/engine_flags.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/json.h"
#include "base/json_argument.h"
#include "base/result.h"
#include "engine/settings.h"
#include "engine/settings_decode.h"
#include "timing/fixed.h"

namespace dynosim::cli {
namespace {

constexpr std::string_view kEngineGroup = "Engine";
constexpr std::string_view kExtra = "--extra-engine-args";

template <class T>
CLI::Option* Add(CLI::App& command, std::string_view group, const std::string& name, T& value,
                 const std::string& type, const std::string& help) {
  return command.add_option(name, value, help)->type_name(type)->group(std::string(group));
}

template <class T>
void Put(Json& object, std::string_view name, const std::optional<T>& value) {
  if (value) {
    object.Add(std::string(name), Json(*value));
  }
}

bool AnyField(const MeasuredFlags& m) {
  return m.model_path || m.system || m.backend || m.backend_version || m.tp || m.moe_tp ||
         m.moe_ep || m.attention_dp;
}

// The timing model of measured kernels; null when no flag asks for it.
Result<Json> MeasuredTiming(const EngineFlags& f) {
  const MeasuredFlags& m = f.measured;
  Json config;
  if (m.config) {
    if (AnyField(m)) {
      return UsageError("--ais-perf-config", "cannot be combined with the single --ais- flags");
    }
    DYNO_TRY(config, JsonOfArgument("--ais-perf-config", *m.config));
  } else if (m.on) {
    if (!m.model_path) {
      return UsageError("--ais-perf-model", "needs --model-path, the name of the model");
    }
    config.Add("model", *m.model_path);
    config.Add("system", m.system.value_or("h200_sxm"));
    config.Add("backend", m.backend.value_or(f.engine_type));
    Put(config, "backend_version", m.backend_version);
    Put(config, "tp", m.tp);
    Put(config, "moe_tp_size", m.moe_tp);
    Put(config, "moe_ep_size", m.moe_ep);
    Put(config, "attention_dp", m.attention_dp);
  } else if (AnyField(m)) {
    return UsageError(m.model_path ? "--model-path" : "--ais- flags",
                      "needs --ais-perf-model; no other part of a model is read");
  } else {
    return Json();
  }
  if (f.prefill_ms || f.planner_profile_data) {
    return UsageError("--ais-perf-model",
                      "cannot be combined with --prefill-ms or --planner-profile-data");
  }
  Json timing;
  timing.Add("type", "external");
  timing.Add("provider", "ais");
  timing.Add("config", std::move(config));
  return timing;
}

Result<Json> FlatEngine(const EngineFlags& f) {
  Json engine;
  engine.Add("backend", f.engine_type);
  Put(engine, "num_gpu_blocks", f.num_gpu_blocks);
  Put(engine, "block_size", f.block_size);
  Put(engine, "max_model_len", f.max_model_len);
  Put(engine, "max_num_seqs", f.max_num_seqs);
  Put(engine, "max_num_batched_tokens", f.max_num_batched_tokens);
  Put(engine, "enable_prefix_caching", f.prefix_caching);
  Put(engine, "enable_chunked_prefill", f.chunked_prefill);
  Put(engine, "preemption_mode", f.preemption_mode);
  Put(engine, "speedup_ratio", f.speedup_ratio);
  Put(engine, "decode_speedup_ratio", f.decode_speedup_ratio);
  if (f.prefill_ms.has_value() != f.decode_ms.has_value()) {
    return UsageError(f.prefill_ms ? "--prefill-ms" : "--decode-ms",
                      "--prefill-ms and --decode-ms must be given together");
  }
  DYNO_TRY(Json timing, MeasuredTiming(f));
  if (!timing.is_null()) {
    engine.Add("timing_model", std::move(timing));
  } else if (f.prefill_ms) {
    if (f.planner_profile_data) {
      return UsageError("--prefill-ms", "cannot be combined with --planner-profile-data");
    }
    timing.Add("type", "fixed");
    timing.Add("prefill_ms", *f.prefill_ms);
    timing.Add("decode_ms", *f.decode_ms);
    engine.Add("timing_model", std::move(timing));
  } else if (f.planner_profile_data) {
    timing.Add("type", "external");
    timing.Add("provider", "dynamo_profile");
    Json config;
    config.Add("path", *f.planner_profile_data);
    timing.Add("config", std::move(config));
    engine.Add("timing_model", std::move(timing));
  }
  Json sglang;
  Put(sglang, "schedule_policy", f.sglang_schedule_policy);
  Put(sglang, "max_prefill_tokens", f.sglang_max_prefill_tokens);
  Put(sglang, "chunked_prefill_size", f.sglang_chunked_prefill_size);
  Put(sglang, "clip_max_new_tokens", f.sglang_clip_max_new_tokens);
  Put(sglang, "schedule_conservativeness", f.sglang_schedule_conservativeness);
  if (!sglang.is_null()) {
    engine.Add("sglang", std::move(sglang));
  }
  if (f.trtllm_capacity_policy) {
    Json trtllm;
    trtllm.Add("capacity_scheduler_policy", *f.trtllm_capacity_policy);
    engine.Add("trtllm", std::move(trtllm));
  }
  Put(engine, "worker_type", f.worker_type);
  Put(engine, "kv_transfer_bandwidth", f.kv_transfer_bandwidth);
  Put(engine, "kv_transfer_timing_mode", f.kv_transfer_timing_mode);
  Put(engine, "kv_transfer_bytes_per_token", f.kv_bytes_per_token);
  Put(engine, "aic_nextn", f.draft_tokens);
  Put(engine, "aic_nextn_accept_rates", f.draft_accept_rates);
  Put(engine, "aic_mtp_seed", f.draft_seed);
  Json out;
  out.Add("engine", std::move(engine));
  Put(out, "gpu_memory_utilization", f.vllm_memory);
  Put(out, "mem_fraction_static", f.sglang_memory);
  Put(out, "free_gpu_memory_fraction", f.trtllm_memory);
  Put(out, "dp_size", f.data_parallel_size);
  return out;
}

Result<engine::EngineSettings> DecodeLive(const Json& json, std::string_view where) {
  DYNO_TRY(engine::EngineSettings settings, engine::DecodeEngineSettings(json, where));
  if (settings.speedup_ratio == 0.0) {
    // Live workers read this as no delay at all.
    settings.timing = std::make_shared<timing::FixedTiming>(0.0, 0.0);
  }
  return settings;
}

bool AnySingle(const EngineFlags& f) {
  return f.num_gpu_blocks || f.block_size || f.max_model_len || f.max_num_seqs ||
         f.max_num_batched_tokens || f.data_parallel_size || f.prefix_caching ||
         f.chunked_prefill || f.preemption_mode || f.planner_profile_data || f.speedup_ratio ||
         f.decode_speedup_ratio || f.prefill_ms || f.decode_ms || f.sglang_schedule_policy ||
         f.sglang_max_prefill_tokens || f.sglang_chunked_prefill_size ||
         f.sglang_clip_max_new_tokens || f.sglang_schedule_conservativeness ||
         f.trtllm_capacity_policy || f.draft_tokens || f.draft_seed || f.draft_accept_rates ||
         f.vllm_memory || f.sglang_memory || f.trtllm_memory || f.measured.on ||
         f.kv_transfer_bandwidth || f.kv_transfer_timing_mode || f.kv_bytes_per_token ||
         f.measured.config || AnyField(f.measured) || f.engine_type != "vllm";
}

// Names with the prefix --ais-, and its older spelling.
void AddMeasuredFlags(CLI::App& command, EngineFlags& f) {
  constexpr std::string_view kGroup = "Measured kernels as the timing model";
  const auto add = [&](const std::string& name, auto& value, const char* type, const char* help) {
    return Add(command, kGroup, "--ais-" + name + ",--aic-" + name, value, type, help);
  };
  MeasuredFlags& m = f.measured;
  command
      .add_flag("--ais-perf-model,--aic-perf-model", m.on,
                "Times of a model on measured kernels; needs --model-path")
      ->group(std::string(kGroup));
  Add(command, kGroup, "--model-path", m.model_path, "MODEL",
      "Name of the model, or a folder with config.json; serve takes the tokenizer.json beside it");
  add("system", m.system, "NAME", "GPU system (default h200_sxm)");
  add("backend", m.backend, "NAME", "Default: --engine-type");
  add("backend-version", m.backend_version, "VERSION", "Default: the newest with data");
  add("tp-size", m.tp, "N", "Tensor parallelism (default 1)");
  add("moe-tp-size", m.moe_tp, "N", "Of the experts");
  add("moe-ep-size", m.moe_ep, "N", "Expert parallelism");
  add("attention-dp-size", m.attention_dp, "N", "Data parallelism of attention (default 1)");
  add("perf-config", m.config, "JSON", "All of it as a JSON object or a file of it");
  add("nextn", f.draft_tokens, "N", "Tokens drafted in a step, 1 to 5 (default none)");
  add("nextn-accept-rates", f.draft_accept_rates, "LIST",
      "Comma list: probability that each draft is accepted after those before it");
  add("mtp-seed", f.draft_seed, "SEED", "Seed of the accepted drafts (default 42)");
  Add(command, kGroup, "--gpu-memory-utilization", f.vllm_memory, "SHARE",
      "Of the GPU memory, for the number of KV blocks: vllm");
  Add(command, kGroup, "--mem-fraction-static", f.sglang_memory, "SHARE", "The same: sglang");
  Add(command, kGroup, "--free-gpu-memory-fraction", f.trtllm_memory, "SHARE", "The same: trtllm");
}

}  // namespace

void AddEngineFlags(CLI::App& command, EngineFlags& f) {
  const auto add = [&](const char* name, auto& value, const char* type, const char* help) {
    return Add(command, kEngineGroup, name, value, type, help);
  };
  add("--extra-engine-args", f.extra_engine_args, "JSON",
      "Engine configuration as a JSON object or a file of it; replaces the flags below");
  add("--engine-type", f.engine_type, "NAME", "vllm (default), sglang or trtllm")
      ->check(CLI::IsMember({"vllm", "sglang", "trtllm"}));
  add("--num-gpu-blocks-override", f.num_gpu_blocks, "N", "KV blocks of a rank (default 16384)");
  add("--block-size,--sglang-page-size", f.block_size, "TOKENS",
      "Default: vllm 64, sglang 1, trtllm 32");
  add("--max-model-len", f.max_model_len, "TOKENS", "Longest sequence (default no limit)");
  add("--max-num-seqs", f.max_num_seqs, "N", "Running requests of a rank (default 256)");
  add("--max-num-batched-tokens", f.max_num_batched_tokens, "N",
      "Token budget of a pass (default 8192)");
  const auto flag = [&](const char* names, std::optional<bool>& value) {
    command
        .add_flag_function(
            names, [&value](std::int64_t count) { value = count > 0; }, "Default on")
        ->group(std::string(kEngineGroup));
  };
  flag("--enable-prefix-caching,!--no-enable-prefix-caching", f.prefix_caching);
  flag("--enable-chunked-prefill,!--no-enable-chunked-prefill", f.chunked_prefill);
  add("--preemption-mode", f.preemption_mode, "MODE", "lifo (default) or fifo");
  add("--speedup-ratio", f.speedup_ratio, "RATIO", "Divides all durations; 0: no delays");
  add("--decode-speedup-ratio", f.decode_speedup_ratio, "RATIO", "The same for decode alone");
  add("--data-parallel-size", f.data_parallel_size, "N", "Ranks of a worker (default 1)");
  add("--prefill-ms", f.prefill_ms, "MS", "Fixed time of a prefill; needs --decode-ms");
  add("--decode-ms", f.decode_ms, "MS", "Fixed time of a decode pass");
  add("--planner-profile-data", f.planner_profile_data, "PATH", "Measured profile (.npz)");
  add("--sglang-schedule-policy", f.sglang_schedule_policy, "NAME", "fifo (default) or lpm");
  add("--sglang-max-prefill-tokens", f.sglang_max_prefill_tokens, "N", "Default 16384");
  add("--sglang-chunked-prefill-size", f.sglang_chunked_prefill_size, "N", "Default 8192");
  add("--sglang-clip-max-new-tokens", f.sglang_clip_max_new_tokens, "N", "Default 4096");
  add("--sglang-schedule-conservativeness", f.sglang_schedule_conservativeness, "RATIO",
      "Default 1.0");
  add("--trtllm-capacity-scheduler-policy", f.trtllm_capacity_policy, "NAME",
      "guaranteed_no_evict, the only one");
  AddMeasuredFlags(command, f);
}

void AddTransferFlags(CLI::App& command, const char* group, EngineFlags& f) {
  Add(command, group, "--kv-transfer-bandwidth", f.kv_transfer_bandwidth, "GB/S",
      "Prefill workers: bandwidth of the handoff, 10^9 bytes/s (default: no delay)");
  Add(command, group, "--kv-transfer-timing-mode", f.kv_transfer_timing_mode, "MODE",
      "Prefill workers: full_prompt (default) or destination_missing, what the decode worker "
      "lacks");
  Add(command, group, "--kv-bytes-per-token", f.kv_bytes_per_token, "BYTES",
      "Prefill workers: KV cache of a token, which the handoff moves");
}

Result<engine::EngineSettings> ReadEngineFlags(const EngineFlags& f) {
  const bool json_form = !f.extra_engine_args.empty();
  if (json_form && AnySingle(f)) {
    return UsageError(std::string(kExtra), "cannot be combined with single engine flags");
  }
  DYNO_TRY(const Json json,
           json_form ? JsonOfArgument(kExtra, f.extra_engine_args) : FlatEngine(f));
  return DecodeLive(json, json_form ? kExtra : std::string_view("engine flags"));
}

Result<engine::EngineSettings> ReadEngineJson(std::string_view flag, const std::string& text) {
  DYNO_TRY(const Json json, JsonOfArgument(flag, text));
  return DecodeLive(json, flag);
}

bool AnyEngineFlag(const EngineFlags& f) { return !f.extra_engine_args.empty() || AnySingle(f); }

}  // namespace dynosim::cli
