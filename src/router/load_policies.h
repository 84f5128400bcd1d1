// SPDX-License-Identifier: Apache-2.0
// Policies that do not look at caches: round robin, random, the least loaded target, and the less
// loaded of two random ones. Load is the number of requests that a target has now.
#pragma once

#include <cstdint>
#include <vector>

#include "base/flat_map.h"
#include "base/random.h"
#include "base/result.h"
#include "router/router.h"

namespace dynosim::router {

// How round robin goes over the ranks of a pool (chapter 30, section 7).
enum class Rotation : std::uint8_t {
  kWorkers,  // worker by worker; inside a worker its ranks rotate separately
  kTargets,  // worker 0 rank 0, worker 0 rank 1, ..., worker 1 rank 0, ...
};

class RoundRobin final : public Router {
 public:
  RoundRobin(const PoolShape& shape, Rotation rotation)
      : shape_(shape), rotation_(rotation), next_rank_(shape.workers, 0) {}

  Result<void> Place(const Arrival& arrival, double now_ms, std::vector<Decision>& out) override;

 private:
  Target Next();

  PoolShape shape_;
  Rotation rotation_;
  std::uint32_t next_ = 0;
  std::vector<std::uint32_t> next_rank_;  // by worker
};

class RandomChoice final : public Router {
 public:
  RandomChoice(const PoolShape& shape, std::uint64_t seed) : shape_(shape), random_(seed) {}

  Result<void> Place(const Arrival& arrival, double now_ms, std::vector<Decision>& out) override;

 private:
  PoolShape shape_;
  ChaCha12 random_;
};

struct LoadOptions {
  std::uint64_t seed = 42;
  bool two_choices = false;  // compare two random targets instead of all
  bool capture_candidates = false;
};

class LeastLoaded final : public Router {
 public:
  LeastLoaded(const PoolShape& shape, const LoadOptions& options)
      : shape_(shape), options_(options), random_(options.seed), requests_(shape.targets(), 0) {}

  Result<void> Place(const Arrival& arrival, double now_ms, std::vector<Decision>& out) override;
  void Terminal(std::uint32_t request, double now_ms, std::vector<Decision>& out) override;

 private:
  void PickCandidates();

  PoolShape shape_;
  LoadOptions options_;
  ChaCha12 random_;
  std::vector<std::uint64_t> requests_;              // by target
  FlatMap<std::uint32_t, std::uint32_t> target_of_;  // placed requests
  std::vector<std::uint32_t> candidates_, least_;
};

}  // namespace dynosim::router
