// SPDX-License-Identifier: Apache-2.0
// Random small cases under constant pressure: tiny blocks and pools, limits, ties, zero durations,
// bursts, sessions. Equal seeds give equal cases.
#pragma once

#include <cstdint>
#include <string>

#include "scenario/scenario.h"
#include "sim/outcome.h"

namespace dynosim::testing {

struct RandomCase {
  scenario::Scenario scenario;
  std::string trace;   // mooncake rows; empty for synthetic traffic
  std::string engine;  // engine configuration as JSON, for messages
};

// `kind` is "vllm", "trtllm" or "sglang", or "vllm_pools" or "sglang_pools" for a prefill and a
// decode pool with a handoff between them.
RandomCase MakeRandomCase(std::uint64_t seed, const std::string& kind);

// The same with two to four workers behind a KV router of random settings.
RandomCase MakeRoutedCase(std::uint64_t seed, const std::string& backend);

// Runs the case and returns the report text without wall-clock fields and configuration.
std::string ReportOf(const RandomCase& random_case, bool pass_by_pass);

// Runs the case with details and telemetry; aborts the test on an error.
sim::Outcome OutcomeOf(const RandomCase& random_case);

}  // namespace dynosim::testing
