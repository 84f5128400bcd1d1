// SPDX-License-Identifier: Apache-2.0
// The workers of a process as its parts see them.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "live/engine_host.h"
#include "live/serve.h"
#include "live/serve_parts.h"
#include "live/worker_link.h"

namespace dynosim::live {

std::string WorkerOptions::name_of(std::uint32_t worker) const {
  if (!pools) {
    return std::to_string(worker);
  }
  return worker < pools->prefill_workers
             ? "prefill-" + std::to_string(worker)
             : "decode-" + std::to_string(worker - pools->prefill_workers);
}

std::vector<std::uint32_t> WorkerOptions::Ranks() const {
  std::vector<std::uint32_t> out;
  for (std::uint32_t worker = 0; worker < count(); ++worker) {
    out.push_back(engine_of(worker).dp_size);
  }
  return out;
}

std::vector<WorkerCard> WorkerOptions::Cards(const std::string& prefix) const {
  if (pools) {
    return {MakeCard(*pools, prefix + "0")};
  }
  std::vector<WorkerCard> out;
  for (std::uint32_t worker = 0; worker < workers; ++worker) {
    WorkerCard card = MakeCard(engine, prefix + std::to_string(worker));
    if (!ports.kv_events.empty()) {
      card.kv_events_port = ports.kv_events[worker];
    }
    if (!ports.kv_replay.empty()) {
      card.kv_replay_port = ports.kv_replay[worker];
    }
    out.push_back(std::move(card));
  }
  return out;
}

HostOptions WorkerOptions::Host(const Publishers& publishers) const {
  return {.engine = engine,
          .workers = workers,
          .handoff_timeout_ms = handoff_timeout_ms,
          .pools = pools,
          .keep_lateness = keep_lateness,
          .kv_events = publishers.kv_events.get(),
          .pass_metrics = publishers.pass_metrics.get(),
          .positional_kv_events = ports.positional,
          .startup_ms = startup_ms,
          .deliver = {}};
}

}  // namespace dynosim::live
