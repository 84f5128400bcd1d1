// SPDX-License-Identifier: Apache-2.0
// What a search is after and how it goes on: the sections `optimization` and `optimizer` of the
// document of `recommend` (chapter 60, C.2).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace dynosim::search {

// The order is that of kTargetNames.
enum class Target : std::uint8_t {
  kThroughput,         // output tokens/s
  kThroughputPerGpu,   // the same by the mean number of GPUs
  kThroughputPerUser,  // mean of 1000/gap, tokens/s of one user
  kGoodput,            // output tokens/s of requests within the latency bounds
  kGoodputPerGpu,
  kTtft,        // mean, ms; lowest
  kE2eLatency,  // mean, ms; lowest
  kMinGpus,     // GPUs; lowest
  kPareto,      // throughput_per_gpu against throughput_per_user
};
std::string_view TargetName(Target target);

// The order is that of kAlgorithms.
enum class Algorithm : std::uint8_t {
  kAuto,    // grid when the space is finite and has no more points than trials, else random
  kGrid,    // every point
  kRandom,  // seeded draws, no point of a finite space twice
  // Suggested by what was found, which the Python package does; grid where that takes no more
  // trials.
  kBayesian,
};
std::string_view AlgorithmName(Algorithm algorithm);

struct Constraints {
  std::optional<std::uint64_t> min_candidate_gpus;
  std::uint64_t max_candidate_gpus = 32;
  std::optional<double> min_goodput_rps;
};

struct SearchSettings {
  Target target = Target::kThroughput;
  bool strict_sla = false;                // the means must keep the latency bounds too
  std::optional<std::string> hardware{};  // for engine.hardware auto
  Constraints constraints{};
  Algorithm algorithm = Algorithm::kBayesian;
  std::uint64_t max_trials = 320;
  std::uint64_t parallelism = 16;  // candidates at a time, at most one per core
  double candidate_timeout_seconds = 600.0;
  std::uint64_t seed = 42;
};

// JSON schema of an object with the two sections.
Json SearchSettingsSchema();

// Reads the two sections of a whole document. Errors name `where` and the dotted path.
Result<SearchSettings> DecodeSearchSettings(const Json& document, const std::string& where);

}  // namespace dynosim::search
