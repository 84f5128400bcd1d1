// SPDX-License-Identifier: Apache-2.0
// The `engine` section of a prediction document: model, hardware, backend and the workers of each
// role (chapter 60, B.2). Values as the user gave them, checked; engine_lowering.h makes engine
// settings of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/decode.h"
#include "engine/settings.h"

namespace dynosim::scenario {

// The order is that of the forms in the document.
enum class CapacityType : std::uint8_t { kDefault, kFixed };
enum class TimingType : std::uint8_t { kDefault, kFixed, kPolynomial };

// GPUs of a role: replicas * tensor * pipeline * attention_data.
struct ParallelismSection {
  std::uint32_t replicas = 1;
  std::uint32_t tensor = 1;
  std::uint32_t pipeline = 1;
  std::uint32_t attention_data = 1;
  std::uint32_t moe_tensor = 1;
  std::uint32_t moe_expert = 1;
};

struct SchedulerSection {
  std::uint64_t max_batched_tokens = 8192;
  std::uint64_t max_sequences = 256;  // 1 for the prefill role
  std::uint64_t prefill_schedule_interval = 1;
  std::uint64_t prefill_decode_interval = 0;
};

struct CapacitySection {
  CapacityType type = CapacityType::kDefault;
  std::optional<double> memory_fraction;  // default: of the backend
  std::optional<std::uint64_t> blocks;
  std::optional<std::uint64_t> bytes;
};

struct KvCacheSection {
  std::optional<std::uint64_t> block_size;  // default: of the backend
  bool prefix_caching = true;
  std::optional<std::uint64_t> bytes_per_token;  // absent: auto
  CapacitySection capacity;
};

struct TimingSection {
  TimingType type = TimingType::kDefault;
  double prefill_ms = 0.0;
  double decode_ms = 0.0;
};

struct WorkerSection {
  ParallelismSection parallelism;
  SchedulerSection scheduler;
  KvCacheSection kv_cache;
  TimingSection timing;
  double startup_seconds = 0.0;
};

struct TransferSection {
  std::optional<std::uint64_t> bytes_per_token;   // absent: auto
  std::optional<double> bandwidth_gb_per_second;  // absent: no delay
  engine::TransferTiming timing_mode = engine::TransferTiming::kDestinationMissing;
};

struct EngineSection {
  bool disaggregated = false;
  std::string model;
  std::string hardware;
  engine::Backend backend = engine::Backend::kVllm;
  std::optional<std::string> backend_version;
  std::optional<std::uint64_t> context_length;  // absent: max
  // By mode: aggregated, or prefill and decode.
  std::optional<WorkerSection> aggregated;
  std::optional<WorkerSection> prefill;
  std::optional<WorkerSection> decode;
  std::optional<TransferSection> kv_transfer;
};

// Reads the section, with the rules between its fields.
void EngineSectionFields(config::Decoder& v, EngineSection& engine);

// Tokens of a KV block when the document does not say.
std::uint64_t DefaultBlockSize(engine::Backend backend);

}  // namespace dynosim::scenario
