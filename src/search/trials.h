// SPDX-License-Identifier: Apache-2.0
// Trials: the points that a search tries, in the order of their numbers. The whole list is made
// before the first one runs, so it depends on the document alone.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

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

// Grid: an error when the space has an open range or more points than trials. Random: branches take
// turns; a finite space ends when it has no more points.
Result<TrialPlan> PlanTrials(const std::vector<Branch>& space, const SearchSettings& settings,
                             const std::string& where);

}  // namespace dynosim::search
