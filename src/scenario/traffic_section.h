// SPDX-License-Identifier: Apache-2.0
// The `traffic` section of a prediction document: where requests come from, how they arrive and
// when the run ends (chapter 60, B.2). Absent, it is 100 synthetic requests, 10 at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/decode.h"
#include "workload/limits.h"
#include "workload/spec.h"

namespace dynosim::scenario {

// The order is that of the forms in the document.
enum class SourceType : std::uint8_t { kSynthetic, kSyntheticSession, kTrace };
enum class LoadType : std::uint8_t { kConcurrency, kPoisson, kConstantRate, kTraceTimestamps };

struct SessionSection {
  std::uint64_t turns = 4;
  double shared_prefix_ratio = 0.0;
  std::uint64_t prefix_groups = 0;
  double inter_turn_delay_ms = 0.0;
  workload::SessionPrompts prompts = workload::SessionPrompts::kCumulative;
};

struct SourceSection {
  SourceType type = SourceType::kSynthetic;
  std::uint64_t input_tokens = 1024;  // of a request, or the new input of a turn
  std::uint64_t output_tokens = 128;  // of a request or turn
  SessionSection session;
  std::vector<std::string> paths;
  std::string format = "mooncake";
  std::optional<std::uint64_t> block_size;
  std::optional<std::string> nested_timestamp_basis;
};

struct LoadSection {
  LoadType type = LoadType::kConcurrency;
  std::uint64_t concurrency = 10;
  std::optional<double> requests_per_second;
  std::optional<double> sessions_per_second;
  std::uint64_t seed = 42;
  double speedup = 1.0;
  std::optional<std::uint64_t> agentic_lanes;
};

struct StopSection {
  std::optional<std::uint64_t> requests;
  std::optional<std::uint64_t> sessions;
  std::optional<double> requests_per_load_unit;
  std::optional<double> sessions_per_load_unit;
  std::optional<double> max_virtual_time_seconds;
  bool empty() const {
    return !requests && !sessions && !requests_per_load_unit && !sessions_per_load_unit &&
           !max_virtual_time_seconds;
  }
};

struct TrafficSection {
  SourceSection source;
  LoadSection load;
  StopSection stop;
};

// What an absent section means.
TrafficSection DefaultTraffic();

// Reads the section, with the rules between its fields.
void TrafficFields(config::Decoder& v, TrafficSection& traffic);

// The workload of a checked section. Agentic traces run on `model`.
workload::WorkloadSpec MakeWorkload(const TrafficSection& traffic, const std::string& model);

}  // namespace dynosim::scenario
