// SPDX-License-Identifier: Apache-2.0
// Values of wanted ranks in a weighted multiset of non-negative doubles, without sorting it.
//
// The bits of a non-negative double, read as an integer, order like the double. A histogram over
// the leading bits says which buckets hold wanted ranks; their samples are copied and sorted. A
// bucket with most of all samples is not copied: it gets a histogram of its own over the bits that
// differ.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "base/check.h"
#include "sim/outcome.h"

namespace dynosim::report {

// Plain values weigh one.
inline double SampleValue(double sample) { return sample; }
inline std::uint64_t SampleWeight(double) { return 1; }
inline double SampleValue(const sim::GapSample& sample) { return sample.gap_ms; }
inline std::uint64_t SampleWeight(const sim::GapSample& sample) { return sample.weight; }

// Samples of one value taken together.
struct WeightedValue {
  double value = 0.0;
  std::uint64_t weight = 0;
};
inline double SampleValue(const WeightedValue& sample) { return sample.value; }
inline std::uint64_t SampleWeight(const WeightedValue& sample) { return sample.weight; }

// A wanted rank (0-based, ascending) and, afterwards, the value found there.
struct RankQuery {
  std::uint64_t rank = 0;
  double value = 0.0;
};

// Smallest and largest of some values.
struct Extremes {
  double min = std::numeric_limits<double>::infinity();
  double max = 0.0;

  void Add(double value) {
    // Branches: new extremes are rare.
    if (value < min) {
      min = value;
    }
    if (value > max) {
      max = value;
    }
  }
};

// Divides the bit patterns of a range among buckets; patterns outside belong to the first or last.
class BitWindow {
 public:
  static constexpr std::size_t kBuckets = 16384;

  explicit BitWindow(const Extremes& range) : low_(std::bit_cast<std::uint64_t>(range.min)) {
    const auto width = std::bit_width(std::bit_cast<std::uint64_t>(range.max) - low_);
    shift_ = std::max(0, static_cast<int>(width) - kBucketBits);
  }

  std::size_t IndexOf(double value) const {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const std::uint64_t index = bits < low_ ? 0 : (bits - low_) >> shift_;
    return static_cast<std::size_t>(std::min<std::uint64_t>(index, kBuckets - 1));
  }

 private:
  static constexpr int kBucketBits = std::bit_width(kBuckets - 1);

  std::uint64_t low_ = 0;
  int shift_ = 0;
};

// A window over the part of a range where the samples are, by a look at some of them.
template <class Sample>
BitWindow ProbeWindow(std::span<const Sample> samples, const Extremes& range) {
  constexpr std::size_t kProbes = 1024;
  Extremes seen;
  for (std::size_t i = 0; i < samples.size(); i += samples.size() / kProbes + 1) {
    const double value = SampleValue(samples[i]);
    if (value >= range.min && value <= range.max) {
      seen.Add(value);
    }
  }
  return BitWindow(seen.min <= seen.max ? seen : range);
}

// Finds the values of ranks among the samples of some weight whose value lies in a range. Samples
// are added front to back; they stay where they are and are read again when ranks are asked for.
template <class Sample>
class RankSelector {
 public:
  RankSelector(std::span<const Sample> samples, const Extremes& range, const BitWindow& window)
      : samples_(samples),
        range_(range),
        window_(window),
        bucket_of_(std::make_unique_for_overwrite<std::uint16_t[]>(samples.size())) {}

  // Counts the next samples in. `all_count` promises that each has weight and lies in the range.
  void Add(std::size_t count, bool all_count) {
    const BitWindow window = window_;  // copies stay in registers
    const Extremes range = range_;
    const Sample* const samples = samples_.data() + added_;
    if (all_count) {
      AddRun(count, [&](std::size_t i) { return window.IndexOf(SampleValue(samples[i])); });
    } else {
      AddRun(count, [&](std::size_t i) {
        const double value = SampleValue(samples[i]);
        const bool counts =
            SampleWeight(samples[i]) != 0 && value >= range.min && value <= range.max;
        return counts ? window.IndexOf(value) : BitWindow::kBuckets;
      });
    }
    added_ += count;
  }

  // Fills in the queries, which are sorted by rank. All samples have been added.
  void Answer(std::span<RankQuery> queries) const {
    DYNO_CHECK(added_ == samples_.size());
    std::vector<std::uint8_t> slot_of(kTableSize);
    std::vector<Slot> slots = Locate(queries, slot_of);
    Collect(slot_of, slots);
    for (Slot& slot : slots) {
      Finish(slot);
    }
  }

 private:
  // A bucket that holds wanted ranks; its queries count from its own first sample.
  struct Slot {
    Extremes range;
    bool in_place = false;  // holds much of the weight: read again instead of copied
    std::span<RankQuery> queries;
    std::vector<WeightedValue> samples;  // neighbours of one value are one sample

    void Copy(double value, std::uint64_t weight) {
      if (!samples.empty() && samples.back().value == value) {
        samples.back().weight += weight;
      } else {
        samples.push_back({.value = value, .weight = weight});
      }
    }
  };
  static constexpr std::size_t kSortLimit = 8192;
  static constexpr std::size_t kTableSize = BitWindow::kBuckets + 1;

  // Neighbours go to different tables and two are under way at a time: additions to memory that
  // might depend on each other are slow.
  template <class BucketAt>
  void AddRun(std::size_t count, const BucketAt& bucket_at) {
    const Sample* const samples = samples_.data() + added_;
    std::uint16_t* const bucket_of = bucket_of_.get() + added_;
    std::uint64_t* const even_table = weights_.data();
    std::uint64_t* const odd_table = even_table + kTableSize;
    std::size_t i = 0;
    for (; i + 1 < count; i += 2) {
      const std::size_t even = bucket_at(i);
      const std::size_t odd = bucket_at(i + 1);
      const std::uint64_t even_sum = even_table[even] + SampleWeight(samples[i]);
      const std::uint64_t odd_sum = odd_table[odd] + SampleWeight(samples[i + 1]);
      bucket_of[i] = static_cast<std::uint16_t>(even);
      bucket_of[i + 1] = static_cast<std::uint16_t>(odd);
      even_table[even] = even_sum;
      odd_table[odd] = odd_sum;
    }
    if (i < count) {
      const std::size_t last = bucket_at(i);
      bucket_of[i] = static_cast<std::uint16_t>(last);
      even_table[last] += SampleWeight(samples[i]);
    }
  }

  std::uint64_t WeightOf(std::size_t bucket) const {
    return weights_[bucket] + weights_[kTableSize + bucket];
  }

  // slot_of: 1 + index of the slot of a bucket, 0 for none.
  std::vector<Slot> Locate(std::span<RankQuery> queries, std::vector<std::uint8_t>& slot_of) const {
    DYNO_CHECK(queries.size() < std::numeric_limits<std::uint8_t>::max());
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < BitWindow::kBuckets; ++i) {
      total += WeightOf(i);
    }
    std::vector<Slot> slots;
    std::size_t next = 0;
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < BitWindow::kBuckets && next < queries.size(); ++i) {
      const std::uint64_t weight = WeightOf(i);
      const std::size_t first = next;
      for (; next < queries.size() && queries[next].rank < below + weight; ++next) {
        queries[next].rank -= below;
      }
      if (next > first) {
        slots.push_back({.range = {},
                         .in_place = samples_.size() > kSortLimit && weight > total / 4,
                         .queries = queries.subspan(first, next - first),
                         .samples = {}});
        slot_of[i] = static_cast<std::uint8_t>(slots.size());
      }
      below += weight;
    }
    DYNO_CHECK(next == queries.size());
    return slots;
  }

  void Collect(std::span<const std::uint8_t> slot_of, std::vector<Slot>& slots) const {
    for (std::size_t i = 0; i < added_; ++i) {
      const std::uint8_t number = slot_of[bucket_of_[i]];
      if (number == 0) {
        continue;
      }
      Slot& slot = slots[number - 1U];
      const double value = SampleValue(samples_[i]);
      slot.range.Add(value);
      if (!slot.in_place) {
        slot.Copy(value, SampleWeight(samples_[i]));
      }
    }
  }

  void Finish(Slot& slot) const {
    if (!(slot.range.min < slot.range.max)) {
      for (RankQuery& query : slot.queries) {
        query.value = slot.range.min;
      }
      return;
    }
    if (slot.in_place) {
      Narrow(samples_, slot);
    } else if (slot.samples.size() > kSortLimit) {
      Narrow(std::span<const WeightedValue>(slot.samples), slot);
    } else {
      Walk(slot);
    }
  }

  // The window covers the slot exactly, so its samples fall into at least two buckets.
  template <class Source>
  static void Narrow(std::span<const Source> samples, const Slot& slot) {
    RankSelector<Source> inner(samples, slot.range, BitWindow(slot.range));
    inner.Add(samples.size(), false);
    inner.Answer(slot.queries);
  }

  static void Walk(Slot& slot) {
    std::ranges::sort(slot.samples, {}, &WeightedValue::value);
    std::uint64_t below = 0;
    auto query = slot.queries.begin();
    for (const WeightedValue& sample : slot.samples) {
      below += sample.weight;
      for (; query != slot.queries.end() && query->rank < below; ++query) {
        query->value = sample.value;
      }
    }
    DYNO_CHECK(query == slot.queries.end());
  }

  std::span<const Sample> samples_;
  Extremes range_;
  BitWindow window_;
  std::size_t added_ = 0;
  std::unique_ptr<std::uint16_t[]> bucket_of_;  // kBuckets: does not count
  std::vector<std::uint64_t> weights_ = std::vector<std::uint64_t>(2 * kTableSize);
};

}  // namespace dynosim::report
