// SPDX-License-Identifier: Apache-2.0
// Settings of one engine (one worker): decoded, defaulted and checked. config.* of an engine JSON
// object is decoded in engine/settings_decode.cc; everything else reads this struct only.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "timing/model.h"

namespace dynosim::engine {

enum class Backend : std::uint8_t { kVllm, kSglang, kTrtllm };
enum class WorkerRole : std::uint8_t { kAggregated, kPrefill, kDecode };
enum class PreemptionMode : std::uint8_t { kLifo, kFifo };
enum class TransferTiming : std::uint8_t { kFullPrompt, kDestinationMissing };
// Order of a class of the KV router's queue.
enum class RouterQueuePolicy : std::uint8_t { kFcfs, kLcfs, kWspt };
enum class SglangPolicy : std::uint8_t { kFifo, kLpm };

// Value of a limit that is switched off (null in the configuration).
inline constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

struct SglangSettings {
  SglangPolicy schedule_policy = SglangPolicy::kFifo;
  std::uint64_t max_prefill_tokens = 16384;
  std::uint64_t chunked_prefill_size = 8192;
  std::uint64_t clip_max_new_tokens = 4096;
  double schedule_conservativeness = 1.0;
};

struct EngineSettings {
  Backend backend = Backend::kVllm;
  std::uint64_t num_gpu_blocks = 16384;  // per rank
  bool num_gpu_blocks_is_explicit = false;
  std::uint64_t block_size = 64;  // tokens; SGLang: the page size
  std::optional<std::uint64_t> max_model_len;
  std::uint64_t max_num_seqs = 256;             // kUnlimited for null
  std::uint64_t max_num_batched_tokens = 8192;  // kUnlimited for null
  std::uint64_t prefill_schedule_interval = 1;
  std::uint64_t prefill_decode_interval = 0;
  bool enable_prefix_caching = true;
  bool enable_chunked_prefill = true;
  double speedup_ratio = 1.0;            // 0: no scaling
  double decode_speedup_ratio = 1.0;     // 0: no scaling
  std::uint32_t speculative_tokens = 0;  // aic_nextn; 0: no speculation
  std::vector<double> accept_rates;      // exactly speculative_tokens entries
  std::uint64_t speculative_seed = 42;   // aic_mtp_seed
  WorkerRole worker_role = WorkerRole::kAggregated;
  PreemptionMode preemption_mode = PreemptionMode::kLifo;
  bool emit_kv_events = false;
  bool emit_kv_token_ids = false;
  std::optional<std::uint64_t> kv_transfer_bytes_per_token;
  std::optional<std::uint64_t> kv_cache_bytes_per_token;
  std::optional<double> kv_transfer_bandwidth_gbps;  // decimal GB/s
  TransferTiming kv_transfer_timing = TransferTiming::kFullPrompt;
  SglangSettings sglang;
  std::uint32_t dp_size = 1;
  std::uint32_t tensor_parallel_size = 1;
  std::uint32_t pipeline_parallel_size = 1;
  // GPUs of one worker.
  std::uint64_t gpus() const {
    return std::uint64_t{tensor_parallel_size} * pipeline_parallel_size * dp_size;
  }
  std::optional<double> startup_time_s;                    // of workers added later
  std::optional<RouterQueuePolicy> router_queue_policy{};  // overrides the KV router's own
  std::shared_ptr<const timing::TimingModel> timing;       // never null after decoding
  Json timing_config;  // the timing_model object that makes it again
};

}  // namespace dynosim::engine
