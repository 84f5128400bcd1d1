// SPDX-License-Identifier: Apache-2.0
// Latencies of one request in milliseconds, empty where undefined (chapter 50, section 3). Summary
// and rows share them, so that they cannot disagree. Differences never fall below zero.
#pragma once

#include <algorithm>
#include <optional>

#include "sim/outcome.h"

namespace dynosim::report {

inline double ElapsedMs(double from_ms, double to_ms) { return std::max(0.0, to_ms - from_ms); }

// Whether a request counts in totals and distributions.
inline bool IsCompleted(const sim::RequestRecord& record) {
  return record.terminal && record.status == workload::TerminalStatus::kCompleted &&
         record.first_admit_ms.has_value();
}

// Time to the first token.
inline std::optional<double> TtftMs(const sim::RequestRecord& record) {
  if (record.output_tokens < 1) {
    return std::nullopt;
  }
  return ElapsedMs(record.arrival_ms, record.first_token_ms);
}

// From the first to the second token.
inline std::optional<double> TtstMs(const sim::RequestRecord& record) {
  if (record.output_tokens < 2) {
    return std::nullopt;
  }
  return ElapsedMs(record.first_token_ms, record.second_token_ms);
}

// Mean gap between the tokens of the request.
inline std::optional<double> TpotMs(const sim::RequestRecord& record) {
  if (record.output_tokens < 2) {
    return std::nullopt;
  }
  return ElapsedMs(record.first_token_ms, record.last_token_ms) /
         static_cast<double>(record.output_tokens - 1);
}

// Arrival to the last token.
inline std::optional<double> EndToEndMs(const sim::RequestRecord& record) {
  if (record.output_tokens < 1) {
    return std::nullopt;
  }
  return ElapsedMs(record.arrival_ms, record.last_token_ms);
}

}  // namespace dynosim::report
