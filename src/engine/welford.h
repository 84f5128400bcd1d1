// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dynosim::engine {

// Mean and population variance by Welford's updates, in the order of the values.
class Welford {
 public:
  void Add(double value) {
    ++count_;
    const double delta = value - mean_;
    mean_ += delta / static_cast<double>(count_);
    sum_ += delta * (value - mean_);
  }
  double Variance() const { return count_ == 0 ? 0.0 : sum_ / static_cast<double>(count_); }

 private:
  std::uint64_t count_ = 0;
  double mean_ = 0.0;
  double sum_ = 0.0;
};

}  // namespace dynosim::engine
