// SPDX-License-Identifier: Apache-2.0
// First and second moments of weighted samples, true to about 1e-14 for millions of them. Samples
// are taken in blocks of two plain arrays: inside a block four lanes are summed side by side,
// blocks are added with compensation. The order of additions is fixed, so results repeat.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace dynosim::report {

// Neumaier's sum: keeps what each addition rounds away.
class CompensatedSum {
 public:
  void Add(double term) {
    const double next = sum_ + term;
    lost_ += std::fabs(sum_) >= std::fabs(term) ? (sum_ - next) + term : (term - next) + sum_;
    sum_ = next;
  }
  double Total() const { return sum_ + lost_; }

 private:
  double sum_ = 0.0;
  double lost_ = 0.0;
};

inline constexpr std::size_t kBlockSize = 512;
using BlockArray = std::array<double, kBlockSize>;

// Two doubles that are added and multiplied side by side.
using Pair [[gnu::vector_size(2 * sizeof(double))]] = double;

inline Pair LoadPair(const BlockArray& values, std::size_t at) {
  return Pair{values[at], values[at + 1]};
}

// Sums of w * (x - shift) and w * (x - shift)^2. The closer the shift is to the mean, the less
// cancels; Usable() says whether it was close enough.
class Moments {
 public:
  // The shift is the mean of the first block.
  Moments() = default;
  explicit Moments(double shift) : shift_(shift), has_shift_(true) {}

  // Entries beyond the last sample carry weight 0 and a finite value; some entry weighs something.
  void Add(const BlockArray& values, const BlockArray& weights) {
    if (!has_shift_) {
      shift_ = BlockMean(values, weights);
      has_shift_ = true;
    }
    const Pair shift = {shift_, shift_};
    Pair first_even = {};
    Pair first_odd = {};
    Pair second_even = {};
    Pair second_odd = {};
    for (std::size_t i = 0; i < kBlockSize; i += 4) {
      const Pair even = LoadPair(values, i) - shift;
      const Pair odd = LoadPair(values, i + 2) - shift;
      const Pair weighted_even = LoadPair(weights, i) * even;
      const Pair weighted_odd = LoadPair(weights, i + 2) * odd;
      first_even += weighted_even;
      first_odd += weighted_odd;
      second_even += weighted_even * even;
      second_odd += weighted_odd * odd;
    }
    const Pair first = first_even + first_odd;
    const Pair second = second_even + second_odd;
    first_.Add(first[0] + first[1]);
    second_.Add(second[0] + second[1]);
  }

  void AddZeros(std::uint64_t count) {
    const double weighted = -shift_ * static_cast<double>(count);
    first_.Add(weighted);
    second_.Add(weighted * -shift_);
  }

  double Mean(std::uint64_t weight) const {
    return shift_ + first_.Total() / static_cast<double>(weight);
  }
  double Deviation(std::uint64_t weight) const {
    return std::sqrt(std::max(0.0, Spread(weight)) / static_cast<double>(weight));
  }
  // At most a factor of ten cancels in the deviation.
  bool Usable(std::uint64_t weight) const { return Spread(weight) >= 0.1 * second_.Total(); }

 private:
  static double BlockMean(const BlockArray& values, const BlockArray& weights) {
    double sum = 0.0;
    double weight = 0.0;
    for (std::size_t i = 0; i < kBlockSize; ++i) {
      sum += values[i] * weights[i];
      weight += weights[i];
    }
    return sum / weight;
  }
  double Spread(std::uint64_t weight) const {
    const double first = first_.Total();
    return second_.Total() - first * first / static_cast<double>(weight);
  }

  double shift_ = 0.0;
  bool has_shift_ = false;
  CompensatedSum first_;
  CompensatedSum second_;
};

}  // namespace dynosim::report
