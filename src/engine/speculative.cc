// SPDX-License-Identifier: Apache-2.0
#include "engine/speculative.h"

#include <cstdint>
#include <vector>

namespace dynosim::engine {

BurstSampler::BurstSampler(std::uint64_t seed, const std::vector<double>& rates)
    : random_(seed), rates_(rates.begin(), rates.end()) {}

}  // namespace dynosim::engine
