// SPDX-License-Identifier: Apache-2.0
// PassRecorder: the passes of one worker with their times and what they did, for views of a run in
// time. The worker's log has the ends and forgets them (PassLog::DropBefore), so they are copied
// before; a start is kept only where it is not the end of the pass before.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/effects.h"
#include "engine/pass_log.h"
#include "sim/outcome.h"

namespace dynosim::sim {

class PassRecorder {
 public:
  PassRecorder(Pool pool, std::uint32_t worker) : pool_(pool), worker_(worker) {}

  // A pass, or the first of a planned run, starts. Passes start in order.
  void OnStart(std::uint64_t pass, double now_ms) { starts_.push_back({pass, now_ms}); }
  // The last pass computed prompt tokens.
  void OnPrefill(std::uint64_t pass, std::uint64_t tokens);
  // A request ended with its tokens from this worker.
  void OnCompleted(const engine::TokenTrack& track);

  // Copies the ends of passes before `pass` that the log still has.
  void Settle(std::uint64_t pass, const engine::PassLog& log);

  // Appends the passes that ended by `end_ms`, in order. Uses this object up.
  void MoveTo(std::vector<PassRecord>& passes, double end_ms);

 private:
  struct Start {
    std::uint64_t pass;
    double at_ms;
  };
  struct Prefill {
    std::uint64_t pass;
    std::uint64_t tokens;
  };

  Pool pool_;
  std::uint32_t worker_;
  std::vector<double> ends_ms_;  // of pass 1, 2, ...
  std::vector<Start> starts_;
  std::vector<Prefill> prefills_;
  std::vector<std::int64_t> differences_;  // change of the requests that get tokens, by pass
};

}  // namespace dynosim::sim
