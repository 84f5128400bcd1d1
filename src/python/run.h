// SPDX-License-Identifier: Apache-2.0
// What the Python package asks for, without Python: a run from arguments or a document, its report
// as text and files, and answers of the performance model. The same calls as those of the commands,
// so that every surface reports the same bytes.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/estimate_query.h"
#include "report/run_report.h"
#include "scenario/scenario.h"

namespace dynosim::python {

// Real time between two questions whether to go on.
inline constexpr std::chrono::milliseconds kAskEvery(50);

struct RunCalls {
  // Asked about every kAskEvery of real time while a run goes on; false stops it. May be
  // empty.
  std::function<bool()> keep_going;
  // Called with each warning about the workload. May be empty.
  std::function<void(const std::string&)> warn;
  // Called with each telemetry sample, compact JSON, while the run goes on; false stops it. May be
  // empty.
  std::function<bool(const std::string&)> sample;
};

// A finished run.
class Run {
 public:
  Run(scenario::Scenario scenario, report::FinishedRun finished)
      : scenario_(std::move(scenario)), finished_(std::move(finished)) {}

  // Compact JSON of the summary.
  std::string SummaryText() const;
  // Compact JSON of the whole report, as the report file holds it.
  std::string ReportText() const;
  // The text table of the commands.
  std::string Table() const;

  // Files appear whole or not at all; parent directories are made.
  Result<void> WriteReport(const std::string& path) const;
  // One line per request; the run must have captured them.
  Result<void> WriteRequests(const std::string& path) const;
  // One line per telemetry sample.
  Result<void> WriteTelemetry(const std::string& path) const;

 private:
  scenario::Scenario scenario_;
  report::FinishedRun finished_;
};

// Arguments of the command `replay`, without program and command name. The flags that name output
// files are refused: a Run writes files when it is asked to.
Result<std::unique_ptr<Run>> RunReplay(const std::vector<std::string>& arguments,
                                       const RunCalls& calls);

struct Prediction {
  std::string document;                // YAML (so JSON too)
  std::string where;                   // its name in errors
  std::vector<std::string> overrides;  // PATH=YAML
  std::string stack = "engine";        // or dynamo
  bool capture_per_request = false;
};
Result<std::unique_ptr<Run>> RunPrediction(const Prediction& prediction, const RunCalls& calls);

// Answers questions to the performance model; a question and its answer are JSON objects, as a line
// of `estimate --queries` and its result.
class Estimates {
 public:
  // `folders`: data folders in front of the usual ones.
  explicit Estimates(std::vector<std::string> folders);
  Result<std::string> Answer(const std::string& question);

 private:
  cli::Estimator estimator_;
};

}  // namespace dynosim::python
