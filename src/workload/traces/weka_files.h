// SPDX-License-Identifier: Apache-2.0
// The files of a weka corpus: one file, or all .json and .jsonl files below a folder, in byte order
// of their relative paths. Both may be packed (.gz, .zst).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace dynosim::workload {

struct WekaFile {
  std::string path;
  std::string name;  // relative path without the ending of a packed file
  bool many_objects = false;
};

Result<std::vector<WekaFile>> FindWekaFiles(const std::string& path);

}  // namespace dynosim::workload
