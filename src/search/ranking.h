// SPDX-License-Identifier: Apache-2.0
// The order of finished candidates (chapter 60, C.3).
#pragma once

#include <cstddef>
#include <vector>

#include "search/candidate.h"
#include "search/settings.h"

namespace dynosim::search {

// Numbers of the feasible candidates, best first: by score, then fewer GPUs, then their own order.
// With target pareto only those that no other beats, by the last objective, lowest first. Equal
// deployments count once.
std::vector<std::size_t> Rank(const std::vector<CandidateResult>& results, Target target);

// Feasible candidates that no other one beats in both objectives, in their own order.
std::vector<std::size_t> ParetoFront(const std::vector<CandidateResult>& results);

}  // namespace dynosim::search
