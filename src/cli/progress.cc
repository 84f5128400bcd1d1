// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

namespace dynosim::cli {
namespace {

constexpr std::chrono::milliseconds kInterval(100);

// Thousands separated by commas.
std::string Grouped(std::uint64_t count) {
  const std::string digits = std::to_string(count);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) {
      text += ',';
    }
    text += digits[i];
  }
  return text;
}

}  // namespace

std::string ProgressText(double now_ms, std::uint64_t done, std::uint64_t total, double elapsed_s) {
  std::string text = fmt::format("virtual {:.1f} s, {} of {} requests", now_ms / 1000.0,
                                 Grouped(done), Grouped(total));
  if (elapsed_s > 0.0) {
    const double rate = static_cast<double>(done) / elapsed_s;
    text += fmt::format(", {} requests/s", Grouped(static_cast<std::uint64_t>(rate)));
  }
  return text;
}

std::string CandidateText(std::uint64_t done, std::uint64_t already, std::uint64_t total,
                          double elapsed_s) {
  std::string text = fmt::format("{} of {} candidates", Grouped(done), Grouped(total));
  if (elapsed_s > 0.0 && done > already) {
    const double rate = static_cast<double>(done - already) / elapsed_s;
    text += fmt::format(
        ", {} a minute, {} s left", Grouped(static_cast<std::uint64_t>(rate * 60)),
        Grouped(static_cast<std::uint64_t>(std::ceil(static_cast<double>(total - done) / rate))));
  }
  return text;
}

ProgressLine::ProgressLine()
    : terminal_(isatty(STDERR_FILENO) != 0), start_(Clock::now()), next_(start_ + kInterval) {}

std::optional<double> ProgressLine::Due() {
  if (!terminal_) {
    return std::nullopt;
  }
  const Clock::time_point now = Clock::now();
  if (now < next_) {
    return std::nullopt;
  }
  next_ = now + kInterval;
  return std::chrono::duration<double>(now - start_).count();
}

void ProgressLine::Show(const std::string& text) {
  shown_ = true;
  const std::string line = "\r" + text + "\x1b[K";
  std::fputs(line.c_str(), stderr);
}

void ProgressLine::Erase() {
  if (shown_) {
    std::fputs("\r\x1b[K", stderr);
    shown_ = false;
  }
}

void Progress::Update(double now_ms, std::uint64_t done, std::uint64_t total) {
  if (const std::optional<double> elapsed_s = line_.Due()) {
    line_.Show(ProgressText(now_ms, done, total, *elapsed_s));
  }
}

void CandidateProgress::Update(std::uint64_t done, std::uint64_t total) {
  if (const std::optional<double> elapsed_s = line_.Due()) {
    line_.Show(CandidateText(done, already_, total, *elapsed_s));
  }
}

}  // namespace dynosim::cli
