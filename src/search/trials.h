// SPDX-License-Identifier: Apache-2.0
// Trials: the points that a search tries, in the order of their numbers. With algorithms grid and
// random the whole list is made before the first one runs, so it depends on the document alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "search/settings.h"
#include "search/space.h"

namespace dynosim::search {

struct Trial {
  std::size_t branch = 0;
  Point point;
};

struct TrialPlan {
  std::vector<Trial> trials;
  Algorithm algorithm = Algorithm::kGrid;  // the one in use, never kAuto
};

// Grid: an error when the space has an open range or more points than trials. Random: as
// DrawTrials. Bayesian: as grid when that has no error, else none, because what is tried next
// depends on what was found.
Result<TrialPlan> PlanTrials(const std::vector<Branch>& space, const SearchSettings& settings,
                             const std::string& where);

// Seeded draws. Branches take turns; a finite space ends when it has no more points.
std::vector<Trial> DrawTrials(const std::vector<Branch>& space, std::uint64_t max_trials,
                              std::uint64_t seed);

// [branch, coordinate...], where a coordinate is the number of an option or a value of the open
// range. The same text always means the same trial of a space.
Json TrialJson(const Trial& trial, const std::vector<Branch>& space);
// Errors name `where`: another shape, or a coordinate outside the space.
Result<Trial> ReadTrial(const Json& json, const std::vector<Branch>& space,
                        const std::string& where);

}  // namespace dynosim::search
