// SPDX-License-Identifier: Apache-2.0
// The objects of a weka corpus as written: recorded conversations with requests and subagents. A
// corpus is one .json file (one object), one .jsonl file (any number), or a folder of both.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace dynosim::workload {

// Times are seconds.
struct WekaRequest {
  double t = 0.0;
  std::optional<double> api_time{};
  std::uint32_t model = 0;  // index in WekaObject::models
  std::uint64_t input_tokens = 0;
  std::uint64_t output_tokens = 0;
  bool has_hashes = false;  // a list that is not empty
  std::uint64_t hashes_begin = 0;
  std::uint64_t hashes_size = 0;
};

struct WekaSubagent {
  std::string agent_id;
  bool blocking = false;
  double t = 0.0;
  std::optional<double> duration_ms{};
  std::vector<WekaRequest> requests{};
};

// One entry of the object's list: a request, or a subagent.
struct WekaEntry {
  WekaRequest request{};
  std::optional<WekaSubagent> subagent{};
};

struct WekaObject {
  std::string where;  // file and line
  std::string name;   // of the source: relative path, and the object's number in a .jsonl file
  std::string id;
  std::uint64_t block_size = 0;
  std::vector<std::string> models;  // of its requests
  std::vector<WekaEntry> entries;
  std::vector<std::uint64_t> hashes;  // of all requests

  std::span<const std::uint64_t> Hashes(const WekaRequest& request) const {
    return std::span(hashes).subspan(request.hashes_begin, request.hashes_size);
  }
};

// Reads a whole corpus and checks every object.
Result<std::vector<WekaObject>> ReadWekaObjects(const std::string& path);

}  // namespace dynosim::workload
