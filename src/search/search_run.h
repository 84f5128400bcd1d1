// SPDX-License-Identifier: Apache-2.0
// SearchRun: a search under way. Runs its trials on all cores and keeps what is finished. The
// results do not depend on the number of threads or on how often the search was interrupted.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "search/candidate.h"
#include "search/journal.h"
#include "search/search.h"
#include "search/trials.h"

namespace dynosim::search {

struct SearchHooks {
  std::function<bool()> interrupted;                                  // asked from any thread
  std::function<void(std::size_t done, std::size_t total)> progress;  // one call at a time
  std::function<void(const std::string&)> warn;                       // each text once a run
};

// Runs one trial, whose time-out begins now. `stopped` and `warn` may be empty. Never fails: what
// goes wrong is the result, which means nothing when `stopped` said true.
CandidateResult RunTrial(const Search& search, const Trial& trial,
                         const std::function<bool()>& stopped,
                         const std::function<void(const std::string&)>& warn);

class SearchRun {
 public:
  // Takes what the journal holds of the trials that are planned.
  SearchRun(Search search, Journal journal);

  const Search& search() const { return search_; }
  // By trial; what is not finished is a failed candidate without a reason.
  const std::vector<CandidateResult>& results() const { return results_; }
  std::size_t finished() const { return finished_; }
  bool complete() const { return finished_ == results_.size(); }
  // Trials that are not finished, in their order.
  std::vector<std::size_t> Pending() const;

  // Plans one more trial and returns its number; a trial that is planned already keeps its own.
  std::size_t Add(Trial trial);
  // Ends a trial. The result is in the journal before it counts. Errors: it cannot be written.
  Result<void> Keep(std::size_t trial, CandidateResult result);
  // Runs all pending trials, unless interrupted. `threads` 0: one per core, at most
  // settings.parallelism. Errors: the journal cannot be written.
  Result<void> RunPending(const SearchHooks& hooks, std::size_t threads = 0);
  // Takes the journal away; the result is written elsewhere by now.
  void RemoveJournal() { journal_.Remove(); }

 private:
  std::string KeyOf(const Trial& trial) const;
  void TakeFromJournal(std::size_t trial);

  Search search_;
  Journal journal_;
  std::vector<CandidateResult> results_;
  std::vector<bool> done_;
  std::size_t finished_ = 0;
  std::map<std::string, std::size_t> numbers_;  // of added trials, by key
};

}  // namespace dynosim::search
