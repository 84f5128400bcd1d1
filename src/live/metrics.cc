// SPDX-License-Identifier: Apache-2.0
#include "live/metrics.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>
#include <prometheus/text_serializer.h>

#include "base/check.h"

namespace dynosim::live {

void Histogram::Observe(double value, std::uint64_t times) {
  const auto bucket = std::ranges::lower_bound(bounds_, value);
  if (bucket != bounds_.end()) {
    counts_[static_cast<std::size_t>(bucket - bounds_.begin())] += times;
  }
  count_ += times;
  sum_ += value * static_cast<double>(times);
}

void Histogram::Add(const Histogram& other) {
  DYNO_DCHECK(bounds_.data() == other.bounds_.data());
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    counts_[i] += other.counts_[i];
  }
  count_ += other.count_;
  sum_ += other.sum_;
}

struct MetricsText::Families {
  std::vector<prometheus::MetricFamily> list;

  prometheus::ClientMetric& Add(std::string_view name, std::string_view help,
                                prometheus::MetricType type, const Labels& labels) {
    auto family = std::ranges::find_if(list, [&](const auto& f) { return f.name == name; });
    if (family == list.end()) {
      list.push_back(
          {.name = std::string(name), .help = std::string(help), .type = type, .metric = {}});
      family = list.end() - 1;
    }
    prometheus::ClientMetric& metric = family->metric.emplace_back();
    for (const auto& [key, value] : labels) {
      metric.label.push_back({.name = key, .value = value});
    }
    return metric;
  }
};

MetricsText::MetricsText() : families_(std::make_unique<Families>()) {}
MetricsText::~MetricsText() = default;

void MetricsText::Gauge(std::string_view name, std::string_view help, const Labels& labels,
                        double value) {
  families_->Add(name, help, prometheus::MetricType::Gauge, labels).gauge.value = value;
}

void MetricsText::Counter(std::string_view name, std::string_view help, const Labels& labels,
                          double value) {
  families_->Add(name, help, prometheus::MetricType::Counter, labels).counter.value = value;
}

void MetricsText::Add(std::string_view name, std::string_view help, const Labels& labels,
                      const Histogram& histogram) {
  auto& out = families_->Add(name, help, prometheus::MetricType::Histogram, labels).histogram;
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < histogram.bounds().size(); ++i) {
    below += histogram.counts()[i];
    out.bucket.push_back({.cumulative_count = below, .upper_bound = histogram.bounds()[i]});
  }
  out.bucket.push_back({.cumulative_count = histogram.count(),
                        .upper_bound = std::numeric_limits<double>::infinity()});
  out.sample_count = histogram.count();
  out.sample_sum = histogram.sum();
}

std::string MetricsText::Text() const {
  return prometheus::TextSerializer().Serialize(families_->list);
}

}  // namespace dynosim::live
