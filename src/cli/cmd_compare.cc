// SPDX-License-Identifier: Apache-2.0
#include "cli/cmd_compare.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>

#include "base/json.h"
#include "base/result.h"
#include "base/text_file.h"
#include "cli/program.h"
#include "report/compare.h"

namespace dynosim::cli {
namespace {

// Exit code 1 means a difference, so whatever keeps the comparison from being made is usage.
Error AsUsage(Error error) {
  error.kind = ErrorKind::kUsage;
  return error;
}

Result<Json> ReadJson(const std::string& path) {
  Result<TextFile> file = TextFile::Read(path);
  if (!file) {
    return std::unexpected(AsUsage(std::move(file).error()));
  }
  Result<Json> json = ParseJson(file->Text(), path);
  if (!json) {
    return std::unexpected(AsUsage(std::move(json).error()));
  }
  return json;
}

Result<double> Tolerance(const std::string& text) {
  if (text.empty()) {
    return 0.0;
  }
  std::string_view digits = text;
  const bool percent = digits.ends_with('%');
  digits.remove_suffix(percent ? 1 : 0);
  double value = -1.0;
  const char* const begin = std::to_address(digits.begin());
  const char* const end = begin + digits.size();
  const auto read = std::from_chars(begin, end, value);
  if (read.ec != std::errc() || read.ptr != end || !(value >= 0.0) || std::isinf(value)) {
    return UsageError("--tolerance",
                      "must be a ratio such as 0.05 or 5%, not negative, got '" + text + "'");
  }
  return percent ? value / 100.0 : value;
}

Result<int> Compare(const CompareCommand& command) {
  report::CompareOptions options{.only = command.metrics};
  DYNO_TRY(options.tolerance, Tolerance(command.tolerance));
  DYNO_TRY(const Json a, ReadJson(command.a));
  DYNO_TRY(const Json b, ReadJson(command.b));
  DYNO_TRY(const report::Comparison comparison, report::CompareReports(a, b, options));
  const std::string text =
      command.json ? DumpJson(report::ComparisonJson(comparison, options), {.indent = 2}) + "\n"
                   : report::ComparisonText(comparison, options, command.all);
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    return UsageError("", "cannot write to the standard output");
  }
  return comparison.within ? kExitOk : kExitFailed;
}

}  // namespace

void AddCompareCommand(CLI::App& app, CompareCommand& options) {
  CLI::App* const compare =
      app.add_subcommand("compare", "Compares two reports, or a report with an AIPerf measurement");
  options.command = compare;
  compare->add_option("a", options.a, "Report, the one to compare with")
      ->type_name("A.json")
      ->required();
  compare->add_option("b", options.b, "Report, or profile_export_aiperf.json")
      ->type_name("B.json")
      ->required();
  compare
      ->add_option("--tolerance", options.tolerance,
                   "Largest difference that is no difference: 0.05 or 5% (default 0)")
      ->type_name("RATIO");
  compare
      ->add_option("--metric", options.metrics,
                   "Only metrics whose name contains this (may be given again)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  compare->add_flag("--all", options.all, "Prints metrics that do not differ as well");
  compare->add_flag("--json", options.json, "Prints JSON");
}

int RunCompare(const CompareCommand& options) {
  const Result<int> code = Compare(options);
  return code ? *code : ReportError(code.error());
}

}  // namespace dynosim::cli
