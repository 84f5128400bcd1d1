// SPDX-License-Identifier: Apache-2.0
// WorkerMetrics: what one worker has to say about itself, written under the engine's own metric
// names (chapter 95, 8.1 and 8.2). The engine thread updates it; a scrape copies it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/effects.h"
#include "engine/settings.h"
#include "live/metrics.h"

namespace dynosim::live {

// Latencies and counters of one rank.
struct RankStats {
  explicit RankStats(engine::Backend backend);

  engine::RankMetrics gauges;
  Histogram ttft_s, itl_s, e2e_s, queue_s, prefill_s, decode_s, inference_s;
  Histogram prompt_tokens_per_request, output_tokens_per_request, max_tokens_param;
  std::uint64_t prompt_tokens = 0, output_tokens = 0;
  std::uint64_t prefix_queries = 0, prefix_hits = 0;  // tokens
  std::uint64_t requests = 0, finished_length = 0, finished_abort = 0, rejected = 0;
  std::uint64_t passes = 0;
};

struct WorkerStats {
  WorkerStats(engine::Backend backend, std::uint32_t dp_size);

  std::vector<RankStats> ranks;
  Histogram lateness_s;    // wake-ups after the modelled end of a pass
  std::string model_name;  // of the first request; empty before it
  std::uint64_t kv_messages = 0, kv_messages_dropped = 0;
};

std::string_view MetricPrefix(engine::Backend backend);

// `worker` is empty for a page of one worker alone, else it labels the series.
void WriteWorkerMetrics(const WorkerStats& stats, const engine::EngineSettings& settings,
                        const std::string& worker, MetricsText& out);

}  // namespace dynosim::live
