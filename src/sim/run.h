// SPDX-License-Identifier: Apache-2.0
// Runs a scenario in virtual time: the loop is the clock (chapter 30).
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "base/scratch_file.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "workload/source.h"

namespace dynosim::sim {

struct RunHooks {
  // Called now and then with the virtual time, the requests that ended and all that may come;
  // returning false stops the run with an error. May be empty.
  std::function<bool(double now_ms, std::uint64_t done, std::uint64_t total)> progress;
  // Takes over the records of a run that needs them for sums only, in the order of
  // Outcome::records, which then stays empty. A run may as well ignore it. May be empty.
  std::function<void(const RequestRecord& record)> ended;
  // Called with each telemetry sample when it is taken; returning false stops the run with an
  // error. May be empty.
  std::function<bool(const TelemetrySample& sample)> sampled;
  // Where token gaps may lie while records are taken over; outlives the outcome. A failure there
  // stops the run with an error. May be null.
  ScratchFile* scratch = nullptr;
};

// `source` was built for the scenario's engine block size and is used up by the run.
Result<Outcome> RunOffline(const scenario::Scenario& scenario, workload::RequestSource& source,
                           const RunHooks& hooks = {});

}  // namespace dynosim::sim
