// SPDX-License-Identifier: Apache-2.0
// A search of `dynosim recommend` and of the Python package, from the document to the files of the
// output directory. Both run the same steps, so both leave the same bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "search/search.h"
#include "search/search_run.h"

namespace dynosim::cli {

struct RecommendOptions {
  std::string config;                   // the file
  std::optional<std::string> document;  // its text when it is no file; `config` is its name then
  std::string stack = "engine";
  std::vector<std::string> overrides;  // in the order of the command line
  std::string output_directory = "./aisimulate-output";
  bool overwrite = false;
  bool resume = false;
  std::string format = "table";
  std::uint64_t top = 20;
  std::string report_html;  // path of a page; empty: not written
};

// What a finished search says.
struct Recommended {
  bool feasible = false;  // at least one candidate is
  std::string counts;     // candidates by status, and why some are not feasible, a line a reason
  std::string output;     // the ranking in the format of the options
};

class RecommendSession {
 public:
  // Reads and checks the options and the document; touches nothing.
  static Result<search::Search> Prepare(const RecommendOptions& options);
  // Checks and prepares the output directory and opens the journal. A search with algorithm
  // bayesian needs the name of the sampler that will suggest its trials, and is refused without.
  static Result<RecommendSession> Open(RecommendOptions options, search::Search search,
                                       const std::string& sampler = "");

  search::SearchRun& run() { return run_; }
  // What to say when it ends early.
  Error InterruptedError() const;
  // Writes the results of a complete search and takes its journal away.
  Result<Recommended> Finish();

 private:
  RecommendSession(RecommendOptions options, search::SearchRun run)
      : options_(std::move(options)), run_(std::move(run)) {}

  RecommendOptions options_;
  search::SearchRun run_;
};

}  // namespace dynosim::cli
