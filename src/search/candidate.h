// SPDX-License-Identifier: Apache-2.0
// A candidate: one prediction document, run and judged. Everything in a result is a function of the
// document, apart from the time-out.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "scenario/prediction.h"
#include "search/settings.h"

namespace dynosim::search {

// The order is that of kStatusNames.
enum class Status : std::uint8_t { kFeasible, kInfeasible, kUnsupported, kTimedOut, kFailed };
inline constexpr std::size_t kStatuses = 5;
std::string_view StatusName(Status status);

struct CandidateResult {
  Status status = Status::kFailed;
  std::string reason_category{};  // empty when feasible
  std::string reason{};           // one line
  std::uint64_t used_gpus = 0;    // 0 when the document could not be read
  std::optional<double> score{};  // larger is better; feasible ones only
  // throughput_per_gpu and throughput_per_user of a run that ended with samples.
  std::vector<std::pair<std::string, double>> objectives{};
  Json metrics{};            // the summary without wall-clock fields; null without a run
  Json prediction_config{};  // the concrete document, defaults filled in; null when unreadable

  Json ToJson() const;
  static Result<CandidateResult> FromJson(const Json& json, const std::string& where);
};

struct CandidateSetup {
  scenario::Stack stack = scenario::Stack::kEngine;
  const SearchSettings* settings = nullptr;
  std::string where;  // for errors: the file
  // Asked again and again while a candidate runs; true ends it. May be empty.
  std::function<bool()> stopped;
  std::function<bool()> timed_out;
  std::function<void(const std::string&)> warn;
};

// Reads the document as `predict` does, with load type kv_capacity_fraction on top, which becomes a
// concurrency. The error is that of the document.
Result<scenario::PredictionDocument> ReadCandidate(const Json& document,
                                                   const CandidateSetup& setup);

// Never fails: what goes wrong is the result.
CandidateResult Evaluate(const Json& document, const CandidateSetup& setup);

}  // namespace dynosim::search
