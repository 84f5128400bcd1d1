// SPDX-License-Identifier: Apache-2.0
// Searches for the Python package. It may run all trials itself, or drive them: suggest points, run
// them elsewhere, and hand back results. Trials and results cross as JSON text.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/recommend_session.h"
#include "python/run.h"
#include "search/search.h"

namespace dynosim::python {

// A checked document of `recommend`.
class Recommendation {
 public:
  explicit Recommendation(cli::RecommendOptions options, search::Search search)
      : options_(std::move(options)), search_(std::move(search)) {}

  const cli::RecommendOptions& options() const { return options_; }
  const search::Search& search() const { return search_; }

  // {"algorithm", "target", "max_trials", "parallelism", "seed", "branches": [[dimension, ...]]}; a
  // dimension is {"options": [{path: value}]} or {"path", "min", "max", "log", "integer"}.
  std::string Description() const;

  // Runs one trial, [branch, coordinate...] as text, and gives its result as text. Errors: no such
  // trial. A stop that `calls` asks for gives a result that means nothing.
  Result<std::string> Evaluate(const std::string& trial, const RunCalls& calls) const;

 private:
  cli::RecommendOptions options_;
  search::Search search_;
};

// Of the command line, without program and command name.
Result<std::unique_ptr<Recommendation>> PrepareArguments(const std::vector<std::string>& arguments);
Result<std::unique_ptr<Recommendation>> PrepareOptions(cli::RecommendOptions options);

// A search with its output directory and journal.
class Campaign {
 public:
  explicit Campaign(cli::RecommendSession session) : session_(std::move(session)) {}
  // `sampler` is what will suggest the trials of algorithm bayesian.
  static Result<std::unique_ptr<Campaign>> Open(const Recommendation& recommendation,
                                                const std::string& sampler);

  // Number of a suggested trial; the same for the same trial.
  Result<std::size_t> Add(const std::string& trial);
  // What is not finished: number and trial.
  std::vector<std::pair<std::size_t, std::string>> Pending();
  std::size_t finished() { return session_.run().finished(); }
  std::size_t planned() { return session_.run().results().size(); }
  // {"status", "score", "objectives"} of a finished trial.
  std::string Outcome(std::size_t trial);
  // The result of Evaluate for a trial. Errors: it is none, or the journal cannot be written.
  Result<void> Keep(std::size_t trial, const std::string& result);
  // Runs what is pending on all cores. `progress` and `calls` are called from this thread alone;
  // true when all is finished, false when `calls` stopped it.
  Result<bool> RunPending(const std::function<void(std::size_t, std::size_t)>& progress,
                          const RunCalls& calls);
  std::string InterruptedText() const { return session_.InterruptedError().Text(); }
  // Writes the files of a complete search.
  Result<cli::Recommended> Finish() { return session_.Finish(); }

 private:
  cli::RecommendSession session_;
};

}  // namespace dynosim::python
