// SPDX-License-Identifier: Apache-2.0
// Progress: one line on a terminal that is rewritten while a run goes on, and erased after it.
// Silent when stderr is no terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace dynosim::cli {

// "virtual 12.3 s, 4,096 of 12,031 requests, 88,123 requests/s"
std::string ProgressText(double now_ms, std::uint64_t done, std::uint64_t total, double elapsed_s);

class Progress {
 public:
  Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { Erase(); }

  // Cheap to call often: the line changes at most ten times a second.
  void Update(double now_ms, std::uint64_t done, std::uint64_t total);
  void Erase();

 private:
  using Clock = std::chrono::steady_clock;

  bool terminal_;
  bool shown_ = false;
  Clock::time_point start_;
  Clock::time_point next_;
};

}  // namespace dynosim::cli
