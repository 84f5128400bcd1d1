// SPDX-License-Identifier: Apache-2.0
// What online replays with one pool and with two do alike with the workers they play against.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "engine/effects.h"
#include "engine/worker.h"
#include "live/clock.h"
#include "live/worker_driver.h"
#include "sim/recorder.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::live {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

// When a worker has something to do next, not after `next_ms`; kNever for no event.
template <class PlayedWorker>
double NextMs(const std::vector<std::unique_ptr<PlayedWorker>>& workers, const Clock& clock,
              double next_ms) {
  for (const auto& worker : workers) {
    next_ms = std::min(next_ms, worker->driver.NextMs().value_or(kNever));
    if (worker->driver.CanStart()) {
      next_ms = std::min(next_ms, clock.NowMs());
    }
  }
  return next_ms;
}

// Records a request that its worker finished or rejected in this pass, and tells the workload.
inline void RecordEnd(const engine::Signal& signal, const RankPass& pass, std::uint32_t place,
                      const engine::Worker& worker, double now_ms, sim::Recorder& recorder,
                      workload::RequestSource& source) {
  if (signal.kind == engine::Signal::Kind::kFinished) {
    const engine::TokenTrack& track = pass.effects.finished[signal.index];
    recorder.OnCompleted(signal.request, now_ms, track, place, worker);
    source.OnTerminal(signal.request, now_ms, workload::TerminalStatus::kCompleted, track.tokens);
  } else {
    recorder.OnRejected(signal.request, now_ms, pass.effects.rejections[signal.index],
                        workload::TerminalStatus::kRejected);
    source.OnTerminal(signal.request, now_ms, workload::TerminalStatus::kRejected, 0);
  }
}

// Closes the record of the run.
template <class PlayedWorker>
sim::Outcome TakeOutcome(std::vector<std::unique_ptr<PlayedWorker>>& workers, const Clock& clock,
                         sim::Recorder& recorder) {
  for (std::uint32_t place = 0; place < workers.size(); ++place) {
    recorder.Settle(place, workers[place]->driver.mutable_worker());
  }
  return recorder.Take(clock.NowMs());
}

}  // namespace dynosim::live
