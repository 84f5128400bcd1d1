// SPDX-License-Identifier: Apache-2.0
#include "workload/load.h"

#include <cstdint>

#include "base/check.h"
#include "base/result.h"
#include "workload/spec.h"
#include "workload/synthetic.h"
#include "workload/traces/registry.h"

namespace dynosim::workload {

Result<LoadedWorkload> LoadWorkload(const WorkloadSpec& spec, std::uint64_t engine_block_size) {
  DYNO_CHECK(spec.synthetic.has_value() != spec.trace.has_value());
  if (spec.trace) {
    return ReadTrace(spec, *spec.trace);
  }
  LoadedWorkload loaded;
  if (spec.synthetic) {
    DYNO_TRY(loaded.source, MakeSyntheticSource(spec, *spec.synthetic, engine_block_size));
  }
  return loaded;
}

}  // namespace dynosim::workload
