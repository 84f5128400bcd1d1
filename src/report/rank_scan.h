// SPDX-License-Identifier: Apache-2.0
// Values of wanted ranks among more samples than memory should hold: reads them several times
// instead of keeping anything of them.
//
// The bits of a non-negative double, read as an integer, order like the double. Each scan counts
// the samples by sixteen more of these bits, among those whose leading bits are the ones found for
// a wanted rank, and so finds sixteen more bits of its value.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "report/rank_select.h"

namespace dynosim::report {

// `Source` has ForEachPiece(visit), which calls visit(span of samples) front to back. Samples
// without weight or below `low` do not count.
template <class Source>
class RankScan {
 public:
  RankScan(const Source& samples, double low) : samples_(samples), low_(low) {}

  // Fills in the queries, which are sorted by rank.
  void Answer(std::span<RankQuery> queries) const {
    std::vector<std::uint64_t> found(queries.size());  // leading bits of the values
    int known = kValueBits;                            // bits below the ones found
    for (const int next : {47, 31, 15, 0}) {
      std::vector<std::uint64_t> groups(found);
      groups.erase(std::ranges::unique(groups).begin(), groups.end());
      const std::vector<std::vector<std::uint64_t>> counts = Count(groups, known, next);
      for (std::size_t i = 0; i < queries.size(); ++i) {
        const auto group = std::ranges::lower_bound(groups, found[i]) - groups.begin();
        found[i] = (found[i] << (known - next)) |
                   Descend(counts[static_cast<std::size_t>(group)], queries[i].rank);
      }
      known = next;
    }
    for (std::size_t i = 0; i < queries.size(); ++i) {
      queries[i].value = std::bit_cast<double>(found[i]);
    }
  }

 private:
  static constexpr int kValueBits = 63;  // without the sign

  // For each group of leading bits (above bit `known`): weights by the bits [next, known).
  std::vector<std::vector<std::uint64_t>> Count(std::span<const std::uint64_t> groups, int known,
                                                int next) const {
    const std::uint64_t buckets = std::uint64_t{1} << (known - next);
    std::vector<std::vector<std::uint64_t>> counts(groups.size(),
                                                   std::vector<std::uint64_t>(buckets));
    samples_.ForEachPiece([&](auto piece) {
      std::size_t group = 0;
      for (const auto& sample : piece) {
        const double value = SampleValue(sample);
        const auto bits = std::bit_cast<std::uint64_t>(value);
        if (!(value >= low_)) {
          continue;
        }
        if (groups[group] != bits >> known) {
          const auto place = std::ranges::find(groups, bits >> known);
          if (place == groups.end()) {
            continue;
          }
          group = static_cast<std::size_t>(place - groups.begin());
        }
        counts[group][(bits >> next) & (buckets - 1)] += SampleWeight(sample);
      }
    });
    return counts;
  }

  // The bucket that holds a rank, which counts from the first sample of that bucket afterwards.
  static std::uint64_t Descend(std::span<const std::uint64_t> counts, std::uint64_t& rank) {
    std::size_t bucket = 0;
    while (bucket + 1 < counts.size() && rank >= counts[bucket]) {
      rank -= counts[bucket++];
    }
    return bucket;
  }

  const Source& samples_;
  double low_;
};

}  // namespace dynosim::report
