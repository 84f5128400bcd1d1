// SPDX-License-Identifier: Apache-2.0
// The report file of a run: the flat summary, per_request when captured, telemetry when sampled,
// coverage, and the configuration that reproduces the run. Keys are sorted, indented by two, with
// two exceptions: `runtime` is the last member of the file and `rejection_reason` the last of a
// row. Two runs of one input differ in `runtime` and in its three fields under their summary names
// only.
#pragma once

#include <string>

#include "base/result.h"
#include "report/json_writer.h"
#include "report/per_request.h"
#include "report/summary.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "workload/agentic_source.h"

namespace dynosim::report {

// What a report is made of; everything is borrowed for the call.
struct ReportParts {
  const Summary& summary;
  const sim::Outcome& outcome;
  const scenario::Scenario& scenario;
  const SessionNames& session_names;
  const workload::AgenticSource* agentic = nullptr;  // of a run that replayed a graph
};

// Writes the report as one object and a line feed, in the style of the writer.
void WriteReport(JsonWriter& out, const ReportParts& parts);

// The report as a file: indented by two, keys sorted. The file appears whole or not at all; parent
// directories are made.
Result<void> WriteJsonReport(const std::string& path, const ReportParts& parts);
// The same beside a file of that name: then it is numbered, as in report_2.json. Returns its path.
Result<std::string> WriteNewJsonReport(const std::string& path, const ReportParts& parts);

}  // namespace dynosim::report
