// SPDX-License-Identifier: Apache-2.0
// End times of the passes of one worker, by pass number (from 1). Old entries can be dropped once
// nobody refers to them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace dynosim::engine {

class PassLog {
 public:
  std::uint64_t first() const { return first_; }
  // Number of the last pass, first() - 1 when empty.
  std::uint64_t last() const { return first_ + ends_ms_.size() - 1; }
  std::size_t size() const { return ends_ms_.size(); }
  bool empty() const { return ends_ms_.empty(); }

  double EndMs(std::uint64_t pass) const {
    DYNO_DCHECK(pass >= first_ && pass <= last());
    return ends_ms_[pass - first_];
  }
  void Append(double end_ms) { ends_ms_.push_back(end_ms); }
  // The last pass ended later than planned.
  void MoveLastEnd(double end_ms) { ends_ms_.back() = end_ms; }
  // Drops the passes after `pass`.
  void TruncateAfter(std::uint64_t pass) { ends_ms_.resize(pass + 1 - first_); }
  // Drops the passes before `pass`.
  void DropBefore(std::uint64_t pass) {
    if (pass <= first_) {
      return;
    }
    const auto count =
        static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(pass - first_, ends_ms_.size()));
    ends_ms_.erase(ends_ms_.begin(), ends_ms_.begin() + count);
    first_ += static_cast<std::uint64_t>(count);
  }
  // First pass in (after, last] that ends at or after `at_ms`; last + 1 if none.
  std::uint64_t FirstEndingAtOrAfter(std::uint64_t after, double at_ms) const {
    return first_ +
           Index(std::lower_bound(ends_ms_.begin() + Offset(after + 1), ends_ms_.end(), at_ms));
  }
  // First pass in (after, last] that ends after `at_ms`; last + 1 if none.
  std::uint64_t FirstEndingAfter(std::uint64_t after, double at_ms) const {
    return first_ +
           Index(std::upper_bound(ends_ms_.begin() + Offset(after + 1), ends_ms_.end(), at_ms));
  }

 private:
  std::ptrdiff_t Offset(std::uint64_t pass) const {
    return static_cast<std::ptrdiff_t>(pass - first_);
  }
  std::uint64_t Index(std::vector<double>::const_iterator it) const {
    return static_cast<std::uint64_t>(it - ends_ms_.begin());
  }

  std::uint64_t first_ = 1;
  std::vector<double> ends_ms_;
};

}  // namespace dynosim::engine
