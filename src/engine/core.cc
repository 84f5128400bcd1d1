// SPDX-License-Identifier: Apache-2.0
// Cores without a handoff side take none of these calls: topologies check the roles first.
#include "engine/core.h"

#include <cstdint>
#include <optional>

#include "base/check.h"
#include "engine/effects.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::engine {

void SchedulerCore::ReleaseSource(std::uint32_t) { DYNO_CHECK(false); }
void SchedulerCore::CancelSource(std::uint32_t) { DYNO_CHECK(false); }
bool SchedulerCore::QueueReservation(const workload::Request&, const workload::RequestSource&,
                                     Rejection&) {
  DYNO_CHECK(false);
}
std::optional<Grant> SchedulerCore::TryReserve() { DYNO_CHECK(false); }
void SchedulerCore::Activate(std::uint32_t) { DYNO_CHECK(false); }
void SchedulerCore::CancelDestination(std::uint32_t) { DYNO_CHECK(false); }
bool SchedulerCore::ActWhenStuck(PassEffects&) { return false; }

}  // namespace dynosim::engine
