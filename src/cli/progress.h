// SPDX-License-Identifier: Apache-2.0
// Progress: one line on a terminal that is rewritten while a run goes on, and erased after it.
// Silent when stderr is no terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace dynosim::cli {

// "virtual 12.3 s, 4,096 of 12,031 requests, 88,123 requests/s"
std::string ProgressText(double now_ms, std::uint64_t done, std::uint64_t total, double elapsed_s);
// "12 of 320 candidates, 344 a minute, 54 s left"; `already` of those that are done took no time.
std::string CandidateText(std::uint64_t done, std::uint64_t already, std::uint64_t total,
                          double elapsed_s);

// The line itself. Calls are cheap: it changes at most ten times a second.
class ProgressLine {
 public:
  ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { Erase(); }

  // Seconds since the start when the line is due, absent otherwise.
  std::optional<double> Due();
  void Show(const std::string& text);
  void Erase();

 private:
  using Clock = std::chrono::steady_clock;

  bool terminal_;
  bool shown_ = false;
  Clock::time_point start_;
  Clock::time_point next_;
};

// Of one run.
class Progress {
 public:
  void Update(double now_ms, std::uint64_t done, std::uint64_t total);

 private:
  ProgressLine line_;
};

// Of a search that has finished `already` candidates before.
class CandidateProgress {
 public:
  explicit CandidateProgress(std::uint64_t already) : already_(already) {}
  void Update(std::uint64_t done, std::uint64_t total);
  void Erase() { line_.Erase(); }

 private:
  ProgressLine line_;
  std::uint64_t already_;
};

}  // namespace dynosim::cli
