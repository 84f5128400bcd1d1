// SPDX-License-Identifier: Apache-2.0
// What a router must know of a pool of live workers.
#pragma once

#include <cstdint>

#include "engine/settings.h"
#include "live/worker_link.h"
#include "router/config.h"
#include "router/router.h"

namespace dynosim::live {

// `workers` equal workers. An engine without a token budget counts with the default one.
router::PoolShape ShapeOf(const engine::EngineSettings& settings, std::uint32_t workers);
router::PoolShape ShapeOf(const WorkerCard& card, std::uint32_t workers);

// The settings for a pool whose engine may choose the order of the queue.
router::RouterSettings RouterOf(router::RouterSettings settings,
                                const engine::EngineSettings& engine);

}  // namespace dynosim::live
