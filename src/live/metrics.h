// SPDX-License-Identifier: Apache-2.0
// Histogram, and MetricsText, which writes the Prometheus text format. Values are plain numbers
// that their owners keep; a page is made when it is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dynosim::live {

class Histogram {
 public:
  // `bounds` are upper bounds, rising, and live for ever.
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds), counts_(bounds.size()) {}

  void Observe(double value, std::uint64_t times = 1);
  std::uint64_t count() const { return count_; }
  double sum() const { return sum_; }
  std::span<const double> bounds() const { return bounds_; }
  std::span<const std::uint64_t> counts() const { return counts_; }  // not cumulative
  void Add(const Histogram& other);

 private:
  std::span<const double> bounds_;
  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  double sum_ = 0.0;
};

using Labels = std::vector<std::pair<std::string, std::string>>;

class MetricsText {
 public:
  MetricsText();
  MetricsText(const MetricsText&) = delete;
  MetricsText& operator=(const MetricsText&) = delete;
  ~MetricsText();

  void Gauge(std::string_view name, std::string_view help, const Labels& labels, double value);
  void Counter(std::string_view name, std::string_view help, const Labels& labels, double value);
  void Add(std::string_view name, std::string_view help, const Labels& labels,
           const Histogram& histogram);
  std::string Text() const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace dynosim::live
