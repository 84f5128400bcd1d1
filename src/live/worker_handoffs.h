// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/kv_event_buffer.h"
#include "live/worker_driver.h"

namespace dynosim::live {

// What takes care of the handoffs of a worker's requests. All calls but WantsEvents come from the
// worker, whose place in the host is the first argument.
class WorkerHandoffs {
 public:
  WorkerHandoffs() = default;
  WorkerHandoffs(const WorkerHandoffs&) = delete;
  WorkerHandoffs& operator=(const WorkerHandoffs&) = delete;
  virtual ~WorkerHandoffs() = default;

  virtual bool WantsEvents(std::uint32_t place) const = 0;
  // The request has failed on its worker.
  virtual void Cancel(std::uint32_t request, double now_ms) = 0;
  virtual void OnRankPass(std::uint32_t place, const RankPass& pass, double now_ms) = 0;
  virtual void OnPassEnd(std::uint32_t place, double now_ms) = 0;
  virtual void OnKvEvents(std::uint32_t place, std::uint32_t rank,
                          const engine::KvEventBuffer& events) = 0;
};

}  // namespace dynosim::live
