// SPDX-License-Identifier: Apache-2.0
// Counts of (query token, attended token) pairs: exact integer sums, so that least times are exact.
#pragma once

#include <algorithm>
#include <cstdint>

namespace dynosim::timing {

// Causal attention of `batch` sequences with `added` tokens behind `prefix`, at most `limit`
// attended tokens each.
constexpr std::uint64_t LimitedPairs(std::uint64_t batch, std::uint64_t added, std::uint64_t prefix,
                                     std::uint64_t limit) {
  if (limit == 0 || added == 0) {
    return 0;
  }
  const std::uint64_t full = prefix + added;
  if (prefix >= limit) {
    return batch * added * limit;
  }
  if (full <= limit) {
    return batch * (full * (full + 1) - prefix * (prefix + 1)) / 2;
  }
  return batch * (limit * (limit + 1) - prefix * (prefix + 1)) / 2 + batch * (full - limit) * limit;
}

// Sum of i / divisor over i = 0 .. last.
constexpr std::uint64_t SumOfQuotients(std::uint64_t last, std::uint64_t divisor) {
  const std::uint64_t q = last / divisor;
  const std::uint64_t r = last % divisor;
  return (q == 0 ? 0 : divisor * q * (q - 1) / 2) + q * (r + 1);
}

// The same for attention to one of `divisor` compressed tokens each, at most `limit` of them.
constexpr std::uint64_t CompressedPairs(std::uint64_t batch, std::uint64_t added,
                                        std::uint64_t prefix, std::uint64_t divisor,
                                        std::uint64_t limit) {
  if (added == 0 || limit == 0) {
    return 0;
  }
  const std::uint64_t first = prefix + 1;
  const std::uint64_t last = prefix + added;
  const std::uint64_t full_from = limit * divisor;  // from here on every token attends to `limit`
  if (last < full_from) {
    return batch * (SumOfQuotients(last, divisor) - SumOfQuotients(first - 1, divisor));
  }
  if (first >= full_from) {
    return batch * added * limit;
  }
  return batch * (SumOfQuotients(full_from - 1, divisor) - SumOfQuotients(first - 1, divisor) +
                  (last - full_from + 1) * limit);
}

}  // namespace dynosim::timing
