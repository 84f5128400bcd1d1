// SPDX-License-Identifier: Apache-2.0
// Where the files of a run go: the default name of the report, folders, and checks before the run
// that no result overwrites an input or another result.
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "scenario/replay_flags.h"

namespace dynosim::cli {

// dynamo_replay_report_<YYYYmmdd_HHMMSS>.json of a local time.
std::string DefaultReportName(const std::tm& local);

// The path of the report file; `given` may be empty or an existing folder.
std::string ReportPath(const std::string& given, const std::tm& local);

struct Output {
  std::string_view flag;
  std::string path;  // empty: not asked for
};

// That no output is a folder, another output, or one of the files that the run reads.
Result<void> CheckOutputs(const std::vector<Output>& outputs,
                          const std::vector<std::string>& inputs);

// Resolves replay.report_json and report_is_new, and checks all output paths.
Result<void> ResolveOutputs(scenario::Replay& replay, const std::tm& local);

}  // namespace dynosim::cli
