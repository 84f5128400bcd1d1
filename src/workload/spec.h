// SPDX-License-Identifier: Apache-2.0
// WorkloadSpec: which requests a run replays and how they arrive (chapter 40). Values as the user
// gave them; workload/load.h checks them and builds the RequestSource.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dynosim::workload {

// What a later turn of a synthetic session asks: its new input alone (groups drawn with seed 42),
// or the previous prompt, its output and the new input (groups drawn with seed 0).
enum class SessionPrompts : std::uint8_t { kFixed, kCumulative };

// Counts are signed 64-bit as the user typed them; load.h says what is allowed.
struct SyntheticSpec {
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t request_count = 0;                     // sessions when the session shape is used
  std::optional<double> request_rate = std::nullopt;  // requests per second, Poisson
  std::optional<double> arrival_interval_ms = std::nullopt;  // fixed interval
  std::uint64_t arrival_seed = 42;
  std::int64_t turns_per_session = 1;
  double shared_prefix_ratio = 0.0;
  std::int64_t num_prefix_groups = 0;
  double inter_turn_delay_ms = 0.0;
  SessionPrompts session_prompts = SessionPrompts::kFixed;
};

struct TraceSpec {
  std::vector<std::string> files;
  std::string format = "mooncake";
  std::optional<std::int64_t> block_size = std::nullopt;  // default depends on the format (512)
  // A mooncake trace of at least so many bytes may be read while the run goes on: the source keeps
  // what is in flight or in a cache, and gives out no token ids. Results are the same.
  std::optional<std::uint64_t> stream_from_bytes = std::nullopt;
  // Block prefixes that a streaming source has in memory before it forgets those that nobody holds.
  std::size_t streamed_prefixes = std::size_t{1} << 20;
  double shared_prefix_ratio = 0.0;  // applied_compute_agentic only
  std::int64_t num_prefix_groups = 0;
  // Agentic graphs only.
  std::optional<std::string> execution_model = std::nullopt;  // what the requests run on
  std::optional<std::int64_t> agentic_lanes = std::nullopt;
  std::optional<std::string> weka_nested_timestamp_basis = std::nullopt;  // weka only
};

struct WorkloadSpec {
  std::optional<SyntheticSpec> synthetic =
      std::nullopt;  // exactly one of synthetic and trace is set
  std::optional<TraceSpec> trace = std::nullopt;
  std::optional<std::int64_t> replay_concurrency = std::nullopt;  // closed loop
  double arrival_speedup_ratio = 1.0;
};

}  // namespace dynosim::workload
