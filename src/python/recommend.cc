// SPDX-License-Identifier: Apache-2.0
#include "python/recommend.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "cli/cmd_recommend.h"
#include "cli/recommend_session.h"
#include "python/run.h"
#include "search/candidate.h"
#include "search/search.h"
#include "search/search_run.h"
#include "search/settings.h"
#include "search/space.h"
#include "search/trials.h"

namespace dynosim::python {
namespace {

Json DimensionJson(const search::Dimension& dimension) {
  Json json;
  if (dimension.open) {
    json.Add("path", dimension.path);
    json.Add("min", dimension.open->min);
    json.Add("max", dimension.open->max);
    json.Add("log", dimension.open->log);
    json.Add("integer", dimension.open->integer);
    return json;
  }
  Json::Array options;
  for (const search::Option& option : dimension.options) {
    Json values;
    for (const search::Assignment& assignment : option) {
      values.Add(assignment.path, assignment.value);
    }
    options.push_back(std::move(values));
  }
  json.Add("options", std::move(options));
  return json;
}

Result<search::Trial> TrialOf(const std::string& text, const search::Search& search) {
  DYNO_TRY(const Json json, ParseJson(text, "trial"));
  return search::ReadTrial(json, search.space, "trial");
}

// What the threads of a search leave for the thread that waits for them.
class Mailbox {
 public:
  void Warn(const std::string& text) {
    const std::scoped_lock lock(mutex_);
    warnings_.push_back(text);
  }
  void Progress(std::size_t done, std::size_t total) {
    const std::scoped_lock lock(mutex_);
    done_ = done;
    total_ = total;
    moved_ = true;
  }
  void Finish() {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    changed_.notify_one();
  }
  // Waits a moment for the end.
  bool Ended() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kAskEvery, [this] { return ended_; });
  }
  // Hands over what came in since the last time.
  void Deliver(const std::function<void(std::size_t, std::size_t)>& progress,
               const RunCalls& calls) {
    std::vector<std::string> warnings;
    std::size_t done = 0;
    std::size_t total = 0;
    bool moved = false;
    {
      const std::scoped_lock lock(mutex_);
      warnings.swap(warnings_);
      moved = std::exchange(moved_, false);
      done = done_;
      total = total_;
    }
    for (const std::string& text : warnings) {
      calls.warn(text);
    }
    if (moved) {
      progress(done, total);
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> warnings_;
  std::size_t done_ = 0;
  std::size_t total_ = 0;
  bool moved_ = false;
  bool ended_ = false;
};

}  // namespace

std::string Recommendation::Description() const {
  const search::SearchSettings& settings = search_.settings;
  Json json;
  json.Add("algorithm", search::AlgorithmName(search_.plan.algorithm));
  json.Add("target", search::TargetName(settings.target));
  json.Add("max_trials", settings.max_trials);
  json.Add("parallelism", settings.parallelism);
  json.Add("seed", settings.seed);
  Json::Array branches;
  for (const search::Branch& branch : search_.space) {
    Json::Array dimensions;
    for (const search::Dimension& dimension : branch.dimensions()) {
      dimensions.push_back(DimensionJson(dimension));
    }
    branches.emplace_back(std::move(dimensions));
  }
  json.Add("branches", std::move(branches));
  return DumpJson(json);
}

Result<std::string> Recommendation::Evaluate(const std::string& trial,
                                             const RunCalls& calls) const {
  DYNO_TRY(const search::Trial point, TrialOf(trial, search_));
  std::int64_t next = 0;
  const auto stopped = [&] {
    const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
    if (now < next) {
      return false;
    }
    next = now + std::chrono::steady_clock::duration(kAskEvery).count();
    return !calls.keep_going();
  };
  return DumpJson(search::RunTrial(search_, point, stopped, calls.warn).ToJson());
}

Result<std::unique_ptr<Recommendation>> PrepareOptions(cli::RecommendOptions options) {
  DYNO_TRY(search::Search search, cli::RecommendSession::Prepare(options));
  return std::make_unique<Recommendation>(std::move(options), std::move(search));
}

Result<std::unique_ptr<Recommendation>> PrepareArguments(
    const std::vector<std::string>& arguments) {
  DYNO_TRY(cli::RecommendOptions options, cli::ParseRecommendArguments(arguments));
  return PrepareOptions(std::move(options));
}

Result<std::unique_ptr<Campaign>> Campaign::Open(const Recommendation& recommendation,
                                                 const std::string& sampler) {
  DYNO_TRY(cli::RecommendSession session,
           cli::RecommendSession::Open(recommendation.options(), recommendation.search(), sampler));
  return std::make_unique<Campaign>(std::move(session));
}

Result<std::size_t> Campaign::Add(const std::string& trial) {
  DYNO_TRY(search::Trial point, TrialOf(trial, session_.run().search()));
  return session_.run().Add(std::move(point));
}

std::vector<std::pair<std::size_t, std::string>> Campaign::Pending() {
  const search::Search& search = session_.run().search();
  std::vector<std::pair<std::size_t, std::string>> pending;
  for (const std::size_t trial : session_.run().Pending()) {
    pending.emplace_back(trial,
                         DumpJson(search::TrialJson(search.plan.trials[trial], search.space)));
  }
  return pending;
}

std::string Campaign::Outcome(std::size_t trial) {
  const search::CandidateResult& result = session_.run().results().at(trial);
  Json json;
  json.Add("status", search::StatusName(result.status));
  json.Add("score", result.score ? Json(*result.score) : Json());
  Json::Array objectives;
  for (const auto& [name, value] : result.objectives) {
    objectives.emplace_back(value);
  }
  json.Add("objectives", std::move(objectives));
  return DumpJson(json);
}

Result<void> Campaign::Keep(std::size_t trial, const std::string& result) {
  if (trial >= planned()) {
    return UsageError("trial", "there is no trial " + std::to_string(trial));
  }
  DYNO_TRY(const Json json, ParseJson(result, "result"));
  DYNO_TRY(search::CandidateResult candidate, search::CandidateResult::FromJson(json, "result"));
  return session_.run().Keep(trial, std::move(candidate));
}

Result<bool> Campaign::RunPending(const std::function<void(std::size_t, std::size_t)>& progress,
                                  const RunCalls& calls) {
  Mailbox mailbox;
  std::atomic<bool> stop = false;
  search::SearchHooks hooks;
  hooks.interrupted = [&] { return stop.load(); };
  hooks.progress = [&](std::size_t done, std::size_t total) { mailbox.Progress(done, total); };
  hooks.warn = [&](const std::string& text) { mailbox.Warn(text); };
  Result<void> result;
  {
    const std::jthread searching([&] {
      result = session_.run().RunPending(hooks);
      mailbox.Finish();
    });
    while (!mailbox.Ended()) {
      mailbox.Deliver(progress, calls);
      if (!calls.keep_going()) {
        stop = true;
      }
    }
  }
  mailbox.Deliver(progress, calls);
  if (!result) {
    return std::unexpected(std::move(result).error());
  }
  return session_.run().complete();
}

}  // namespace dynosim::python
