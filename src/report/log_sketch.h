// SPDX-License-Identifier: Apache-2.0
// LogSketch: percentiles of any number of positive samples in constant memory. Bucket k counts the
// values in (g^(k-1), g^k]; its answer is within a relative 0.001 of all of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "report/rank_select.h"

namespace dynosim::report {

class LogSketch {
 public:
  void Add(double value, std::uint64_t weight) {
    const double k = std::ceil(std::log(value) * (1.0 / log_gamma_));
    weights_[static_cast<std::size_t>(static_cast<std::int64_t>(k) + kOffset)] += weight;
    extremes_.Add(value);
    total_ += weight;
  }

  // Queries are sorted by rank. The first and the last rank are answered exactly.
  void Answer(std::span<RankQuery> queries) const {
    std::uint64_t below = 0;
    std::size_t next = 0;
    for (std::size_t i = 0; i < weights_.size() && next < queries.size(); ++i) {
      below += weights_[i];
      const double k = static_cast<double>(static_cast<std::int64_t>(i) - kOffset);
      for (; next < queries.size() && queries[next].rank < below; ++next) {
        const double middle = std::exp(k * log_gamma_) * (2.0 / (2.0 + kStep));
        queries[next].value = std::clamp(middle, extremes_.min, extremes_.max);
        if (queries[next].rank == 0) {
          queries[next].value = extremes_.min;
        } else if (queries[next].rank == total_ - 1) {
          queries[next].value = extremes_.max;
        }
      }
    }
  }

 private:
  static constexpr double kAccuracy = 0.001;
  static constexpr double kStep = 2.0 * kAccuracy / (1.0 - kAccuracy);  // g - 1
  static constexpr std::int64_t kOffset = 380'000;  // the logarithm of a double is above -745

  double log_gamma_ = std::log1p(kStep);
  std::vector<std::uint64_t> weights_ = std::vector<std::uint64_t>(740'000);
  Extremes extremes_;
  std::uint64_t total_ = 0;
};

}  // namespace dynosim::report
