// SPDX-License-Identifier: Apache-2.0
#include "live/worker_link.h"

#include <cstdint>
#include <string>
#include <utility>

#include "engine/settings.h"
#include "engine/transfer.h"
#include "live/handoff_coordinator.h"

namespace dynosim::live {

WorkerCard MakeCard(const engine::EngineSettings& settings, std::string id) {
  return {.id = std::move(id),
          .role = settings.worker_role,
          .backend = settings.backend,
          .transfer = engine::TermsOf(settings),
          .ranks = settings.dp_size,
          .block_size = settings.block_size,
          .total_blocks = settings.num_gpu_blocks,
          .max_model_len = settings.max_model_len.value_or(0),
          .max_num_seqs = settings.max_num_seqs,
          .max_num_batched_tokens = settings.max_num_batched_tokens};
}

WorkerCard MakeCard(const HandoffOptions& pools, std::string id) {
  WorkerCard card = MakeCard(pools.decode, std::move(id));
  card.role = engine::WorkerRole::kAggregated;
  card.max_num_batched_tokens = pools.prefill.max_num_batched_tokens;
  card.members = pools.decode_workers;
  return card;
}

}  // namespace dynosim::live
