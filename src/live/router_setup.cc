// SPDX-License-Identifier: Apache-2.0
#include "live/router_setup.h"

#include <cstdint>

#include "engine/settings.h"
#include "live/worker_link.h"
#include "router/config.h"
#include "router/router.h"

namespace dynosim::live {

router::PoolShape ShapeOf(const engine::EngineSettings& settings, std::uint32_t workers) {
  return ShapeOf(MakeCard(settings, ""), workers);
}

router::PoolShape ShapeOf(const WorkerCard& card, std::uint32_t workers) {
  constexpr std::uint64_t kDefaultBatchedTokens = 8192;
  const std::uint64_t budget = card.max_num_batched_tokens;
  return {.workers = workers,
          .ranks = card.ranks,
          .block_size = card.block_size,
          .max_batched_tokens = budget == engine::kUnlimited ? kDefaultBatchedTokens : budget,
          .pool_blocks = card.total_blocks};
}

router::RouterSettings RouterOf(router::RouterSettings settings,
                                const engine::EngineSettings& engine) {
  settings.kv.queue_policy = engine.router_queue_policy.value_or(settings.kv.queue_policy);
  return settings;
}

}  // namespace dynosim::live
