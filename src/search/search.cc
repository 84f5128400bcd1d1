// SPDX-License-Identifier: Apache-2.0
#include "search/search.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/result.h"
#include "base/text_file.h"
#include "scenario/prediction.h"
#include "search/candidate.h"
#include "search/journal.h"
#include "search/paths.h"
#include "search/settings.h"
#include "search/space.h"
#include "search/trials.h"

namespace dynosim::search {
namespace {

using Clock = std::chrono::steady_clock;

// A mistake in the document shows in every candidate, and then it is an error of the document. A
// combination that does not exist shows in some.
Result<void> CheckAnyReads(const Search& search) {
  constexpr std::size_t kMaxProbes = 256;
  const CandidateSetup setup{.stack = search.stack,
                             .settings = &search.settings,
                             .where = search.where,
                             .stopped = {},
                             .timed_out = {},
                             .warn = {}};
  std::optional<Error> first;
  const std::size_t count = search.plan.trials.size();
  const std::size_t stride = std::max<std::size_t>(1, count / kMaxProbes);
  for (std::size_t trial = 0; trial < count; trial += stride) {
    const auto read = ReadCandidate(search.DocumentOf(trial), setup);
    if (read || read.error().kind != ErrorKind::kUsage) {
      return {};
    }
    if (!first) {
      first = read.error();
    }
  }
  return first ? Result<void>(std::unexpected(*first)) : Result<void>();
}

// The work that the threads share.
class Runner {
 public:
  Runner(const Search& search, Journal& journal, const SearchHooks& hooks)
      : search_(search), journal_(journal), hooks_(hooks) {
    outcome_.results.resize(search.plan.trials.size());
    done_.resize(outcome_.results.size());
    for (auto& [trial, result] : journal.finished()) {
      if (trial < outcome_.results.size()) {
        outcome_.results[trial] = std::move(result);
        done_[trial] = true;
        ++outcome_.finished;
      }
    }
  }

  Result<SearchOutcome> Run(std::size_t threads);

 private:
  void Work();
  CandidateResult RunOne(std::size_t trial);
  void Keep(std::size_t trial, CandidateResult result);
  bool Stopped() const { return failed_.load() || (hooks_.interrupted && hooks_.interrupted()); }
  void Warn(const std::string& text);

  const Search& search_;
  Journal& journal_;
  const SearchHooks& hooks_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // of everything below
  SearchOutcome outcome_;
  std::vector<bool> done_;  // by the journal, before the threads start
  std::optional<Error> error_;
  std::set<std::string> warned_;
};

void Runner::Warn(const std::string& text) {
  const std::scoped_lock lock(mutex_);
  if (hooks_.warn && warned_.insert(text).second) {
    hooks_.warn(text);
  }
}

CandidateResult Runner::RunOne(std::size_t trial) {
  const auto limit = std::chrono::duration<double>(search_.settings.candidate_timeout_seconds);
  const Clock::time_point start = Clock::now();
  const CandidateSetup setup{.stack = search_.stack,
                             .settings = &search_.settings,
                             .where = search_.where,
                             .stopped = [this] { return Stopped(); },
                             .timed_out = [&] { return Clock::now() - start > limit; },
                             .warn = [this](const std::string& text) { Warn(text); }};
  try {
    return Evaluate(search_.DocumentOf(trial), setup);
  } catch (const std::exception& error) {  // out of memory, above all
    CandidateResult result;
    result.reason_category = "unknown";
    result.reason = error.what();
    return result;
  }
}

void Runner::Keep(std::size_t trial, CandidateResult result) {
  const std::scoped_lock lock(mutex_);
  if (Result<void> kept = journal_.Append(trial, result); !kept) {
    error_ = std::move(kept).error();
    failed_ = true;
    return;
  }
  outcome_.results[trial] = std::move(result);
  ++outcome_.finished;
  if (hooks_.progress) {
    hooks_.progress(outcome_.finished, outcome_.results.size());
  }
}

void Runner::Work() {
  while (true) {
    const std::size_t trial = next_++;
    if (trial >= done_.size() || Stopped()) {
      return;
    }
    if (done_[trial]) {
      continue;
    }
    CandidateResult result = RunOne(trial);
    if (Stopped()) {  // perhaps in the middle of it
      return;
    }
    Keep(trial, std::move(result));
  }
}

Result<SearchOutcome> Runner::Run(std::size_t threads) {
  {
    std::vector<std::jthread> pool;
    for (std::size_t i = 1; i < threads; ++i) {
      pool.emplace_back([this] { Work(); });
    }
    Work();
  }
  if (error_) {
    return std::unexpected(*error_);
  }
  return std::move(outcome_);
}

std::string ContentHash(std::string_view text) {
  return fmt::format("{:016x}", Xxh3(std::as_bytes(std::span(text)), 0));
}

}  // namespace

Json Search::DocumentOf(std::size_t trial) const {
  const Trial& t = plan.trials[trial];
  return space[t.branch].Document(t.point);
}

Json Search::ChoicesOf(std::size_t trial) const {
  const Trial& t = plan.trials[trial];
  Json choices = Json::Object();
  for (Assignment& assignment : space[t.branch].Values(t.point)) {
    choices.Add(std::move(assignment.path), std::move(assignment.value));
  }
  return choices;
}

std::vector<std::string> Search::Inputs() const {
  std::vector<std::string> files;
  if (const Json* paths = FindPath(document, "traffic.source.paths");
      paths != nullptr && paths->is_array()) {
    for (const Json& path : paths->array()) {
      if (path.is_string()) {
        files.push_back(path.string());
      }
    }
  }
  if (const Json* model = FindPath(document, "engine.model");
      model != nullptr && model->is_string()) {
    const std::filesystem::path config = std::filesystem::path(model->string()) / "config.json";
    std::error_code error;
    if (std::filesystem::is_regular_file(config, error)) {
      files.push_back(config.string());
    }
  }
  return files;
}

Result<Json> Search::Subject() const {
  Json subject;
  subject.Add("document", WithoutExecution(document));
  subject.Add("stack", stack == scenario::Stack::kDynamo ? "dynamo" : "engine");
  Json inputs;
  for (const std::string& file : Inputs()) {
    DYNO_TRY(const TextFile text, TextFile::Read(file));
    inputs.Add(file, ContentHash(text.Text()));
  }
  subject.Add("inputs", std::move(inputs));
  return subject;
}

Result<Search> PrepareSearch(Json document, scenario::Stack stack, const std::string& where) {
  Search search{.document = std::move(document),
                .stack = stack,
                .where = where,
                .settings = {},
                .space = {},
                .plan = {}};
  DYNO_TRY(search.settings, DecodeSearchSettings(search.document, where));
  DYNO_TRY(search.space, BuildSpace(search.document, search.settings, where));
  DYNO_TRY(search.plan, PlanTrials(search.space, search.settings, where));
  DYNO_TRY_VOID(CheckAnyReads(search));
  return search;
}

Result<SearchOutcome> RunSearch(const Search& search, Journal& journal, const SearchHooks& hooks,
                                std::size_t threads) {
  if (threads == 0) {
    const std::uint64_t cores = std::max(1U, std::thread::hardware_concurrency());
    threads = std::min(cores, search.settings.parallelism);
  }
  return Runner(search, journal, hooks).Run(threads);
}

}  // namespace dynosim::search
