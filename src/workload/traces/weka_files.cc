// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/weka_files.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/result.h"

namespace dynosim::workload {
namespace {

namespace fs = std::filesystem;

// The file when its name ends like a corpus file.
std::optional<WekaFile> AsWekaFile(std::string path, std::string name) {
  for (const std::string_view packed : {".gz", ".zst"}) {
    if (name.ends_with(packed)) {
      name.resize(name.size() - packed.size());
    }
  }
  const bool many_objects = name.ends_with(".jsonl");
  if (!many_objects && !name.ends_with(".json")) {
    return std::nullopt;
  }
  return WekaFile{.path = std::move(path), .name = std::move(name), .many_objects = many_objects};
}

Result<std::vector<WekaFile>> ScanFolder(const std::string& path) {
  std::vector<WekaFile> files;
  std::error_code error;
  fs::recursive_directory_iterator at(path, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    const fs::file_status status = at->symlink_status(error);
    if (error) {
      break;
    }
    if (fs::is_symlink(status)) {
      return FailedError(at->path().string(), "is a symbolic link; a corpus must not hold links");
    }
    if (fs::is_regular_file(status)) {
      std::optional<WekaFile> file =
          AsWekaFile(at->path().string(), at->path().lexically_relative(path).generic_string());
      if (file) {
        files.push_back(std::move(*file));
      }
    }
  }
  if (error) {
    return FailedError(path, "cannot be read: " + error.message());
  }
  if (files.empty()) {
    return FailedError(path, "the folder holds no .json or .jsonl files");
  }
  std::sort(files.begin(), files.end(),
            [](const WekaFile& a, const WekaFile& b) { return a.name < b.name; });
  return files;
}

}  // namespace

Result<std::vector<WekaFile>> FindWekaFiles(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return ScanFolder(path);
  }
  std::optional<WekaFile> file = AsWekaFile(path, fs::path(path).filename().string());
  if (!file) {
    return FailedError(path, "must be a folder or end in .json or .jsonl");
  }
  return std::vector<WekaFile>{std::move(*file)};
}

}  // namespace dynosim::workload
