// SPDX-License-Identifier: Apache-2.0
// Round robin over the workers of an aggregated pool; inside a worker its ranks rotate separately
// (chapter 30, section 7).
#pragma once

#include <cstdint>
#include <vector>

namespace dynosim::router {

struct Target {
  std::uint32_t worker = 0;
  std::uint32_t rank = 0;
};

class RoundRobin {
 public:
  RoundRobin(std::uint32_t workers, std::uint32_t ranks) : ranks_(ranks), next_rank_(workers, 0) {}

  Target Place() {
    const auto workers = static_cast<std::uint32_t>(next_rank_.size());
    const std::uint32_t worker = next_ % workers;
    next_ = worker + 1;
    const std::uint32_t rank = next_rank_[worker];
    next_rank_[worker] = (rank + 1) % ranks_;
    return {worker, rank};
  }

 private:
  std::uint32_t ranks_;
  std::uint32_t next_ = 0;
  std::vector<std::uint32_t> next_rank_;  // by worker
};

}  // namespace dynosim::router
