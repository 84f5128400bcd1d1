// SPDX-License-Identifier: Apache-2.0
#include "cli/report_paths.h"

#include <cstddef>
#include <ctime>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "scenario/replay_flags.h"

namespace dynosim::cli {
namespace {

namespace fs = std::filesystem;

// The same file, or the same name of one that does not exist yet.
bool SameFile(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error) && !error) {
    // Devices such as /dev/null may take several outputs.
    return fs::is_regular_file(a, error);
  }
  return fs::weakly_canonical(a, error) == fs::weakly_canonical(b, error) && !fs::exists(a, error);
}

}  // namespace

std::string DefaultReportName(const std::tm& local) {
  return fmt::format("dynamo_replay_report_{:04}{:02}{:02}_{:02}{:02}{:02}.json",
                     local.tm_year + 1900, local.tm_mon + 1, local.tm_mday, local.tm_hour,
                     local.tm_min, local.tm_sec);
}

std::string ReportPath(const std::string& given, const std::tm& local) {
  if (given.empty()) {
    return "./" + DefaultReportName(local);
  }
  std::error_code error;
  if (fs::is_directory(given, error)) {
    return (fs::path(given) / DefaultReportName(local)).string();
  }
  return given;
}

Result<void> CheckOutputs(const std::vector<Output>& outputs,
                          const std::vector<std::string>& inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Output& output = outputs[i];
    if (output.path.empty()) {
      continue;
    }
    std::error_code error;
    if (fs::is_directory(output.path, error)) {
      return UsageError(std::string(output.flag), output.path + " is a directory");
    }
    for (std::size_t k = 0; k < i; ++k) {
      if (!outputs[k].path.empty() && SameFile(outputs[k].path, output.path)) {
        return UsageError(std::string(output.flag),
                          "and " + std::string(outputs[k].flag) + " name the same file");
      }
    }
    for (const std::string& input : inputs) {
      if (SameFile(input, output.path)) {
        return UsageError(std::string(output.flag),
                          "would overwrite " + input + ", which this run reads");
      }
    }
  }
  return {};
}

Result<void> ResolveOutputs(scenario::Replay& replay, const std::tm& local) {
  std::string path = ReportPath(replay.report_json, local);
  replay.report_is_new = path != replay.report_json;
  replay.report_json = std::move(path);
  const auto& trace = replay.scenario.workload.trace;
  return CheckOutputs({{.flag = "--report-json", .path = replay.report_json},
                       {.flag = "--report-jsonl", .path = replay.report_jsonl},
                       {.flag = "--telemetry-jsonl", .path = replay.scenario.telemetry.jsonl_path},
                       {.flag = "--report-html", .path = replay.report_html},
                       {.flag = "--trace-out", .path = replay.trace_out}},
                      trace ? trace->files : std::vector<std::string>{});
}

}  // namespace dynosim::cli
