// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

namespace dynosim::cli {
namespace {

constexpr std::chrono::milliseconds kInterval(100);

// Thousands separated by commas.
std::string Grouped(std::uint64_t value) {
  std::string digits = std::to_string(value);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
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

Progress::Progress()
    : terminal_(isatty(STDERR_FILENO) != 0), start_(Clock::now()), next_(start_ + kInterval) {}

void Progress::Update(double now_ms, std::uint64_t done, std::uint64_t total) {
  if (!terminal_) {
    return;
  }
  const Clock::time_point now = Clock::now();
  if (now < next_) {
    return;
  }
  next_ = now + kInterval;
  shown_ = true;
  const double elapsed_s = std::chrono::duration<double>(now - start_).count();
  const std::string line = "\r" + ProgressText(now_ms, done, total, elapsed_s) + "\x1b[K";
  std::fputs(line.c_str(), stderr);
}

void Progress::Erase() {
  if (shown_) {
    std::fputs("\r\x1b[K", stderr);
    shown_ = false;
  }
}

}  // namespace dynosim::cli
