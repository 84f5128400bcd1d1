// SPDX-License-Identifier: Apache-2.0
// Search: plans the trials of a document, runs them on all cores, and keeps what is finished. The
// results do not depend on the number of threads or on how often the search was interrupted.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "scenario/prediction.h"
#include "search/candidate.h"
#include "search/journal.h"
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

  Json DocumentOf(std::size_t trial) const;
  // The values that the trial chose, by path.
  Json ChoicesOf(std::size_t trial) const;
  // Files that every candidate reads.
  std::vector<std::string> Inputs() const;
  // What makes it this search: the document without what does not change the results, and the
  // content of the inputs. Errors: an input cannot be read.
  Result<Json> Subject() const;
};

// Errors name `where` and the path: the sections of the search, domains out of place, and a
// document of which no candidate can be read.
Result<Search> PrepareSearch(Json document, scenario::Stack stack, const std::string& where);

struct SearchHooks {
  std::function<bool()> interrupted;                                  // asked from any thread
  std::function<void(std::size_t done, std::size_t total)> progress;  // one call at a time
  std::function<void(const std::string&)> warn;                       // each text once
};

struct SearchOutcome {
  std::vector<CandidateResult> results;  // by trial; all of them unless interrupted
  std::size_t finished = 0;
  bool interrupted() const { return finished < results.size(); }
};

// `threads` 0: one per core, at most settings.parallelism. Every finished candidate is in the
// journal before it counts.
Result<SearchOutcome> RunSearch(const Search& search, Journal& journal, const SearchHooks& hooks,
                                std::size_t threads = 0);

}  // namespace dynosim::search
