// SPDX-License-Identifier: Apache-2.0
// A router that keeps no state ignores what happens after the placement.
#include "router/router.h"

#include <cstdint>
#include <span>
#include <vector>

#include "kv/events.h"

namespace dynosim::router {

void Router::PrefillDone(std::uint32_t, double, std::vector<Decision>&) {}
void Router::Terminal(std::uint32_t, double, std::vector<Decision>&) {}
bool Router::CancelPending(std::uint32_t) { return false; }
void Router::OnStored(std::uint32_t, std::span<const kv::BlockName>) {}
void Router::OnRemoved(std::uint32_t, std::span<const kv::BlockName>) {}

}  // namespace dynosim::router
