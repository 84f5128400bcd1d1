// SPDX-License-Identifier: Apache-2.0
#include "sim/pool_router.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/result.h"
#include "engine/settings.h"
#include "router/config.h"
#include "router/registry.h"
#include "router/router.h"
#include "sim/outcome.h"
#include "workload/request.h"

namespace dynosim::sim {

namespace {

constexpr std::uint64_t kDefaultBatchedTokens = 8192;

router::PoolRole RoleOf(Pool pool) {
  switch (pool) {
    case Pool::kAggregated:
      return router::PoolRole::kAggregated;
    case Pool::kPrefill:
      return router::PoolRole::kPrefill;
    case Pool::kDecode:
      return router::PoolRole::kDecode;
  }
  return router::PoolRole::kAggregated;
}

router::RouterSettings SettingsOf(const scenario::Scenario& scenario,
                                  const engine::EngineSettings& engine) {
  router::RouterSettings settings = scenario.router;
  settings.kv.queue_policy = engine.router_queue_policy.value_or(settings.kv.queue_policy);
  return settings;
}

}  // namespace

PoolRouter::PoolRouter(const RoutingContext& context, Pool pool,
                       const engine::EngineSettings& settings, std::uint32_t workers)
    : context_(context),
      pool_(pool),
      shape_{.workers = workers,
             .ranks = settings.dp_size,
             .block_size = settings.block_size,
             .max_batched_tokens = settings.max_num_batched_tokens == engine::kUnlimited
                                       ? kDefaultBatchedTokens
                                       : settings.max_num_batched_tokens},
      router_(router::MakeRouter(SettingsOf(context.scenario, settings), shape_, RoleOf(pool))) {
  if (router_->WantsEvents()) {
    feed_.emplace(*router_, context.scenario.router.kv_event_lag_ms,
                  context.source.SharesGeneratedBlocks());
  }
}

Result<void> PoolRouter::Place(const workload::Request& request, double now_ms) {
  router::Arrival arrival{.request = request, .source = context_.source};
  if (context_.forced != nullptr) {
    DYNO_TRY(const std::uint32_t number,
             context_.forced->TargetOf(request, pool_, shape_.targets()));
    arrival.forced = shape_.TargetOf(number);
  }
  if (feed_) {
    feed_->Sync(now_ms);
  }
  const std::size_t first = decisions_.size();
  DYNO_TRY_VOID(router_->Place(arrival, now_ms, decisions_));
  Record(first, now_ms);
  return {};
}

void PoolRouter::PrefillDone(std::uint32_t request, double now_ms) {
  const std::size_t first = decisions_.size();
  router_->PrefillDone(request, now_ms, decisions_);
  Record(first, now_ms);
}

void PoolRouter::Terminal(std::uint32_t request, double now_ms) {
  const std::size_t first = decisions_.size();
  router_->Terminal(request, now_ms, decisions_);
  Record(first, now_ms);
}

RoutingRecord RecordOf(const router::Decision& d, Pool pool, const router::PoolShape& shape,
                       double now_ms) {
  RoutingRecord record{.pool = pool,
                       .queued = d.queued_at_ms.has_value(),
                       .queue_entered_at_ms = d.queued_at_ms.value_or(0.0),
                       .released_at_ms = d.queued_at_ms ? now_ms : 0.0,
                       .worker = d.target.worker,
                       .scheduler = shape.NumberOf(d.target),
                       .dp_rank = d.target.rank};
  if (d.overlap) {
    record.reported_overlap_tokens = d.overlap->selected * shape.block_size;
    record.selected_overlap_blocks = d.overlap->selected;
    record.best_available_overlap_blocks = d.overlap->best_available;
  }
  return record;
}

void PoolRouter::Record(std::size_t first, double now_ms) {
  for (std::size_t i = first; i < decisions_.size(); ++i) {
    router::Decision& d = decisions_[i];
    RoutingRecord record = RecordOf(d, pool_, shape_, now_ms);
    if (d.overlap && context_.telemetry) {
      const std::uint64_t blocks = std::max<std::uint64_t>(
          1, (d.request.prompt_tokens + shape_.block_size - 1) / shape_.block_size);
      context_.telemetry->OnRouted(static_cast<double>(d.overlap->selected) /
                                   static_cast<double>(blocks));
    }
    record.candidates = std::move(d.candidates);
    if (context_.forced != nullptr) {
      ++context_.recorder.outcome().placements_forced;
      context_.recorder.outcome().placements_outside_minimum += d.possible ? 0 : 1;
    }
    context_.recorder.OnRouted(d.request.id, std::move(record));
  }
}

}  // namespace dynosim::sim
