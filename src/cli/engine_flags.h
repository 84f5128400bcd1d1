// SPDX-License-Identifier: Apache-2.0
// Flags that describe the engine of a live worker, under the names of its mock engine (chapter 95,
// section 4).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/settings.h"

namespace CLI {
class App;
}

namespace dynosim::cli {

// Measured kernels as the timing model: one configuration, or its single fields.
struct MeasuredFlags {
  bool on = false;
  std::optional<std::string> config;  // JSON text, or a file
  std::optional<std::string> model_path, system, backend, backend_version;
  std::optional<std::uint64_t> tp, moe_tp, moe_ep, attention_dp;
};

// Either the JSON form or the single ones.
struct EngineFlags {
  std::string extra_engine_args;  // JSON text, or a file
  std::string engine_type = "vllm";
  std::optional<std::uint64_t> num_gpu_blocks, block_size, max_model_len, max_num_seqs,
      max_num_batched_tokens, data_parallel_size;
  std::optional<bool> prefix_caching, chunked_prefill;
  std::optional<std::string> preemption_mode, planner_profile_data;
  std::optional<double> speedup_ratio, decode_speedup_ratio;
  std::optional<double> prefill_ms, decode_ms;
  std::optional<std::string> sglang_schedule_policy;
  std::optional<std::uint64_t> sglang_max_prefill_tokens, sglang_chunked_prefill_size,
      sglang_clip_max_new_tokens;
  std::optional<double> sglang_schedule_conservativeness;
  std::optional<std::string> trtllm_capacity_policy;
  std::optional<std::uint64_t> draft_tokens, draft_seed;
  std::optional<std::string> draft_accept_rates;
  std::optional<std::string> worker_type;  // aggregated, prefill or decode
  std::optional<double> kv_transfer_bandwidth;
  std::optional<std::string> kv_transfer_timing_mode;
  std::optional<std::uint64_t> kv_bytes_per_token;
  std::optional<double> vllm_memory, sglang_memory, trtllm_memory;
  MeasuredFlags measured;
};

// `flags` must outlive the command.
void AddEngineFlags(CLI::App& command, EngineFlags& flags);
// Those of the prompts that a prefill worker hands over.
void AddTransferFlags(CLI::App& command, const char* group, EngineFlags& flags);
Result<engine::EngineSettings> ReadEngineFlags(const EngineFlags& flags);
// The engine of a live worker from JSON text or a file of it.
Result<engine::EngineSettings> ReadEngineJson(std::string_view flag, const std::string& text);
// A flag of the engine was given.
bool AnyEngineFlag(const EngineFlags& flags);

}  // namespace dynosim::cli
