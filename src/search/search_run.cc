// SPDX-License-Identifier: Apache-2.0
#include "search/search_run.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "search/candidate.h"
#include "search/journal.h"
#include "search/search.h"
#include "search/trials.h"

namespace dynosim::search {
namespace {

// The work that the threads share.
class Runner {
 public:
  Runner(SearchRun& run, const SearchHooks& hooks)
      : run_(run), hooks_(hooks), pending_(run.Pending()) {}

  Result<void> Run(std::size_t threads);

 private:
  void Work();
  void Keep(std::size_t trial, CandidateResult result);
  bool Stopped() const { return failed_.load() || (hooks_.interrupted && hooks_.interrupted()); }
  void Warn(const std::string& text);

  SearchRun& run_;
  const SearchHooks& hooks_;
  const std::vector<std::size_t> pending_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // of run_ and everything below
  std::optional<Error> error_;
  std::set<std::string> warned_;
};

void Runner::Warn(const std::string& text) {
  const std::scoped_lock lock(mutex_);
  if (hooks_.warn && warned_.insert(text).second) {
    hooks_.warn(text);
  }
}

void Runner::Keep(std::size_t trial, CandidateResult result) {
  const std::scoped_lock lock(mutex_);
  if (Result<void> kept = run_.Keep(trial, std::move(result)); !kept) {
    error_ = std::move(kept).error();
    failed_ = true;
    return;
  }
  if (hooks_.progress) {
    hooks_.progress(run_.finished(), run_.results().size());
  }
}

void Runner::Work() {
  while (true) {
    const std::size_t next = next_++;
    if (next >= pending_.size() || Stopped()) {
      return;
    }
    const std::size_t trial = pending_[next];
    CandidateResult result = RunTrial(
        run_.search(), run_.search().plan.trials[trial], [this] { return Stopped(); },
        [this](const std::string& text) { Warn(text); });
    if (Stopped()) {  // perhaps in the middle of it
      return;
    }
    Keep(trial, std::move(result));
  }
}

Result<void> Runner::Run(std::size_t threads) {
  {
    std::vector<std::jthread> pool;
    for (std::size_t i = 1; i < std::min(threads, pending_.size()); ++i) {
      pool.emplace_back([this] { Work(); });
    }
    Work();
  }
  return error_ ? Result<void>(std::unexpected(*error_)) : Result<void>();
}

}  // namespace

CandidateResult RunTrial(const Search& search, const Trial& trial,
                         const std::function<bool()>& stopped,
                         const std::function<void(const std::string&)>& warn) {
  using Clock = std::chrono::steady_clock;
  const auto limit = std::chrono::duration<double>(search.settings.candidate_timeout_seconds);
  const Clock::time_point start = Clock::now();
  const CandidateSetup setup{.stack = search.stack,
                             .settings = &search.settings,
                             .where = search.where,
                             .stopped = stopped,
                             .timed_out = [&] { return Clock::now() - start > limit; },
                             .warn = warn};
  try {
    return Evaluate(search.DocumentOf(trial), setup);
  } catch (const std::exception& error) {  // out of memory, above all
    CandidateResult result;
    result.reason_category = "unknown";
    result.reason = error.what();
    return result;
  }
}

SearchRun::SearchRun(Search search, Journal journal)
    : search_(std::move(search)), journal_(std::move(journal)) {
  results_.resize(search_.plan.trials.size());
  done_.resize(results_.size());
  for (std::size_t trial = 0; trial < results_.size(); ++trial) {
    TakeFromJournal(trial);
  }
}

void SearchRun::TakeFromJournal(std::size_t trial) {
  const auto found = journal_.finished().find(trial);
  if (found != journal_.finished().end()) {
    results_[trial] = std::move(found->second);
    done_[trial] = true;
    ++finished_;
  }
}

std::vector<std::size_t> SearchRun::Pending() const {
  std::vector<std::size_t> pending;
  for (std::size_t trial = 0; trial < done_.size(); ++trial) {
    if (!done_[trial]) {
      pending.push_back(trial);
    }
  }
  return pending;
}

std::string SearchRun::KeyOf(const Trial& trial) const {
  return DumpJson(TrialJson(trial, search_.space));
}

std::size_t SearchRun::Add(Trial trial) {
  const auto [known, added] = numbers_.try_emplace(KeyOf(trial), results_.size());
  if (added) {
    search_.plan.trials.push_back(std::move(trial));
    results_.emplace_back();
    done_.push_back(false);
    TakeFromJournal(results_.size() - 1);
  }
  return known->second;
}

Result<void> SearchRun::Keep(std::size_t trial, CandidateResult result) {
  DYNO_TRY_VOID(journal_.Append(trial, result));
  results_[trial] = std::move(result);
  finished_ += done_[trial] ? 0 : 1;
  done_[trial] = true;
  return {};
}

Result<void> SearchRun::RunPending(const SearchHooks& hooks, std::size_t threads) {
  if (threads == 0) {
    const std::uint64_t cores = std::max(1U, std::thread::hardware_concurrency());
    threads = std::min(cores, search_.settings.parallelism);
  }
  return Runner(*this, hooks).Run(threads);
}

}  // namespace dynosim::search
