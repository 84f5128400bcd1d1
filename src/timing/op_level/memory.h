// SPDX-License-Identifier: Apache-2.0
// Memory of one GPU and the KV pool that is left of it. Bytes per rank; pools are per rank too, so
// attention replicas change nothing here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "timing/op_level/pass_model.h"

namespace dynosim::timing {

struct CapacityQuestion {
  std::uint64_t block_size = 64;  // tokens
  std::uint64_t max_batched_tokens = 8192;
  std::uint64_t max_requests = 256;
  // Share of the memory that may be used; absent: the backend's own default. vLLM and SGLang take
  // it of the whole memory, TensorRT-LLM of what the rest leaves.
  std::optional<double> memory_fraction{};
  std::uint64_t cuda_graph_bytes = 0;  // set aside for captured graphs
};

struct MemoryUse {
  double weights = 0.0;
  double activations = 0.0;
  double communication = 0.0;
  double runtime = 0.0;
  double cuda_graphs = 0.0;
};

struct Capacity {
  MemoryUse use;
  double budget_bytes = 0.0;             // left for the KV cache
  std::uint64_t bytes_of_one_token = 0;  // of a sequence of one token, fixed state included
  std::uint64_t tokens = 0;
  std::uint64_t blocks = 0;
};

// The default share of a backend.
double DefaultMemoryFraction(std::string_view backend);
// KV pool of one rank. Errors name what does not fit. Draft layers are not charged.
Result<Capacity> FindCapacity(const PassModel& model, const CapacityQuestion& question);
// KV bytes of one token that a transfer between workers moves: by the configuration file alone,
// with 2 bytes per element unless a KV type is set explicitly.
Result<std::uint64_t> TransferBytesPerToken(const ModelSpec& model, std::uint64_t tp,
                                            const std::optional<std::string>& kv_mode);

}  // namespace dynosim::timing
