// SPDX-License-Identifier: Apache-2.0
#include "sim/run.h"

#include "base/result.h"
#include "scenario/scenario.h"
#include "sim/aggregated.h"
#include "sim/disaggregated.h"
#include "sim/outcome.h"
#include "workload/source.h"

namespace dynosim::sim {

Result<Outcome> RunOffline(const scenario::Scenario& scenario, workload::RequestSource& source,
                           const RunHooks& hooks) {
  if (scenario.disaggregated()) {
    return DisaggregatedRun(scenario, source, hooks).Run();
  }
  return AggregatedRun(scenario, source, hooks).Run();
}

}  // namespace dynosim::sim
