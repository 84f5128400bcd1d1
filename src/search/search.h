// SPDX-License-Identifier: Apache-2.0
// Search: a checked document of `recommend` with its space and the trials that are planned. Running
// them is search/search_run.h.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "scenario/prediction.h"
#include "search/settings.h"
#include "search/space.h"
#include "search/trials.h"

namespace dynosim::search {

// A checked document of `recommend`.
struct Search {
  Json document;
  scenario::Stack stack = scenario::Stack::kEngine;
  std::string where;  // the file, for errors
  SearchSettings settings;
  std::vector<Branch> space;
  TrialPlan plan;

  Json DocumentOf(const Trial& trial) const { return space[trial.branch].Document(trial.point); }
  // The values that a planned trial chose, by path.
  Json ChoicesOf(std::size_t trial) const;
  // Files that every candidate reads.
  std::vector<std::string> Inputs() const;
  // What makes it this search: the document without what does not change the results, and the
  // content of the inputs. `sampler` says what suggests the trials when the plan does not.
  // Errors: an input cannot be read.
  Result<Json> Subject(const std::string& sampler = "") const;
};

// Errors name `where` and the path: the sections of the search, domains out of place, and a
// document of which no candidate can be read. With algorithm bayesian no trial is planned.
Result<Search> PrepareSearch(Json document, scenario::Stack stack, const std::string& where);

}  // namespace dynosim::search
