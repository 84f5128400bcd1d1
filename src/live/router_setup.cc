// SPDX-License-Identifier: Apache-2.0
#include "live/router_setup.h"

#include <cstdint>

#include "engine/settings.h"
#include "router/config.h"
#include "router/router.h"

namespace dynosim::live {

router::PoolShape ShapeOf(const engine::EngineSettings& settings, std::uint32_t workers) {
  constexpr std::uint64_t kDefaultBatchedTokens = 8192;
  return {.workers = workers,
          .ranks = settings.dp_size,
          .block_size = settings.block_size,
          .max_batched_tokens = settings.max_num_batched_tokens == engine::kUnlimited
                                    ? kDefaultBatchedTokens
                                    : settings.max_num_batched_tokens,
          .pool_blocks = settings.num_gpu_blocks};
}

router::RouterSettings RouterOf(router::RouterSettings settings,
                                const engine::EngineSettings& engine) {
  settings.kv.queue_policy = engine.router_queue_policy.value_or(settings.kv.queue_policy);
  return settings;
}

}  // namespace dynosim::live
