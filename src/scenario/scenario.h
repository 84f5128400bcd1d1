// SPDX-License-Identifier: Apache-2.0
// Scenario: everything one offline run needs, as checked values. Surfaces (flags, YAML, Python)
// build it; sim runs it; report reads the parts that concern the report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/settings.h"
#include "router/config.h"
#include "scenario/placements.h"
#include "workload/spec.h"

namespace dynosim::scenario {

struct Goodput {
  std::optional<double> ttft_ms, itl_ms, e2e_ms;
  bool any() const { return ttft_ms || itl_ms || e2e_ms; }
};

struct TelemetryOptions {
  bool capture = false;    // samples go into the report
  bool page = false;       // samples are drawn on the HTML page
  bool fits_page = false;  // and nowhere else: the interval grows with the length of the run
  std::string jsonl_path;  // empty: no file
  double sample_interval_ms = 1000.0;
  bool enabled() const { return capture || page || !jsonl_path.empty(); }
};

struct Scenario {
  workload::WorkloadSpec workload;
  engine::EngineSettings engine;  // aggregated topology
  std::uint32_t num_workers = 1;
  // Prefill/decode topology: both engines are set, `engine` and `num_workers` are not used.
  std::optional<engine::EngineSettings> prefill_engine{};
  std::optional<engine::EngineSettings> decode_engine{};
  std::uint32_t num_prefill_workers = 1;
  std::uint32_t num_decode_workers = 1;
  std::optional<double> max_sim_time_ms;
  bool capture_per_request = false;
  bool timeline = false;  // keep what views in time need: request details and worker passes
  TelemetryOptions telemetry;
  Goodput goodput;
  router::RouterSettings router;
  std::optional<Placements> placements{};  // forced decisions
  std::string placements_path{};           // where they come from, for reports
  // Tokens of a KV block of the engine that computes prompts.
  std::uint64_t block_size() const {
    return prefill_engine ? prefill_engine->block_size : engine.block_size;
  }
  bool disaggregated() const { return prefill_engine.has_value(); }
  bool online = false;        // in real time
  bool pass_by_pass = false;  // switches the fast path off; results are the same
};

}  // namespace dynosim::scenario
