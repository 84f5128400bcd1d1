// SPDX-License-Identifier: Apache-2.0
#include "cli/output_directory.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/result.h"

namespace dynosim::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOption = "--output-dir";
constexpr std::array<std::string_view, 7> kKnownFiles = {
    "prediction.json",       "recommendation.json",    "recommendation.csv",    "requests.jsonl",
    "resource-runtime.json", "execution-events.jsonl", "recommendation.journal"};

// NNNN.yaml
bool IsRecommendation(const fs::path& path) {
  const std::string name = path.filename().string();
  constexpr std::size_t kDigits = 4;
  return name.size() == kDigits + 5 && name.ends_with(".yaml") &&
         std::all_of(name.begin(), name.begin() + kDigits,
                     [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<fs::path> KnownResults(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const std::string_view name : kKnownFiles) {
    const fs::path file = directory / name;
    if (fs::is_regular_file(fs::symlink_status(file, error)) || fs::is_symlink(file, error)) {
      found.push_back(file);
    }
  }
  for (fs::directory_iterator at(directory / "recommendations", error), end; !error && at != end;
       at.increment(error)) {
    if (IsRecommendation(at->path())) {
      found.push_back(at->path());
    }
  }
  return found;
}

}  // namespace

std::string InDirectory(const std::string& directory, const std::string& file) {
  return (fs::path(directory) / file).string();
}

Result<void> PrepareOutputDirectory(const std::string& path, bool overwrite,
                                    const std::vector<std::string>& inputs) {
  const std::string option(kOption);
  std::error_code error;
  if (path.empty()) {
    return UsageError(option, "must not be empty");
  }
  if (!fs::exists(path, error)) {
    if (!fs::create_directories(path, error) && error) {
      return UsageError(option, path + " cannot be made: " + error.message());
    }
    return {};
  }
  if (!fs::is_directory(path, error)) {
    return UsageError(option, path + " exists and is no directory");
  }
  const bool empty = fs::is_empty(path, error);
  if (error) {
    return UsageError(option, path + " cannot be read: " + error.message());
  }
  if (empty) {
    return {};
  }
  if (!overwrite) {
    return UsageError(
        option, "directory " + path + " is not empty; --overwrite replaces the " + "results in it");
  }
  const std::vector<fs::path> results = KnownResults(path);
  for (const fs::path& result : results) {
    for (const std::string& input : inputs) {
      if (fs::equivalent(result, input, error) && !error) {
        return UsageError(option, "would replace " + input + ", which this run reads");
      }
    }
  }
  for (const fs::path& result : results) {
    if (!fs::remove(result, error) && error) {
      return UsageError(option, result.string() + " cannot be replaced: " + error.message());
    }
  }
  return {};
}

}  // namespace dynosim::cli
