// SPDX-License-Identifier: Apache-2.0
#include "report/aiperf.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"

namespace dynosim::report {
namespace {

struct Metric {
  std::string_view theirs;
  std::string_view ours;
  bool distribution = false;  // `ours` gets a prefix for each statistic
};
constexpr std::array kMetrics = {
    Metric{.theirs = "time_to_first_token", .ours = "ttft_ms", .distribution = true},
    Metric{.theirs = "time_to_second_token", .ours = "ttst_ms", .distribution = true},
    Metric{.theirs = "inter_token_latency", .ours = "tpot_ms", .distribution = true},
    Metric{.theirs = "request_latency", .ours = "e2e_latency_ms", .distribution = true},
    Metric{.theirs = "request_throughput", .ours = "request_throughput_rps"},
    Metric{.theirs = "output_token_throughput", .ours = "output_throughput_tok_s"},
    Metric{.theirs = "total_token_throughput", .ours = "total_throughput_tok_s"},
    Metric{.theirs = "request_count", .ours = "completed_requests"},
    Metric{.theirs = "total_isl", .ours = "total_input_tokens"},
    Metric{.theirs = "total_osl", .ours = "total_output_tokens"},
    Metric{.theirs = "benchmark_duration", .ours = "duration_ms"},
};

struct Statistic {
  std::string_view theirs;
  std::string_view prefix;
};
constexpr std::array kStatistics = {
    Statistic{.theirs = "avg", .prefix = "mean_"}, Statistic{.theirs = "p50", .prefix = "median_"},
    Statistic{.theirs = "p75", .prefix = "p75_"},  Statistic{.theirs = "p90", .prefix = "p90_"},
    Statistic{.theirs = "p95", .prefix = "p95_"},  Statistic{.theirs = "p99", .prefix = "p99_"}};

struct Unit {
  std::string_view name;
  double ms;
};
constexpr std::array kTimeUnits = {
    Unit{.name = "s", .ms = 1e3},           Unit{.name = "sec", .ms = 1e3},
    Unit{.name = "seconds", .ms = 1e3},     Unit{.name = "us", .ms = 1e-3},
    Unit{.name = "ns", .ms = 1e-6},         Unit{.name = "microseconds", .ms = 1e-3},
    Unit{.name = "nanoseconds", .ms = 1e-6}};

// Metrics are members of the document, in old versions of its member `records`.
const Json& Root(Json&&) = delete;
const Json& Root(const Json& document) {
  const Json* const records = document.is_object() ? document.Find("records") : nullptr;
  return records != nullptr && records->is_object() ? *records : document;
}

const Json* FindMetric(const Json& root, std::string_view name) {
  const Json* const metric = root.is_object() ? root.Find(name) : nullptr;
  const bool known = metric != nullptr && metric->is_object() && metric->Find("unit") != nullptr;
  return known ? metric : nullptr;
}

std::optional<double> Number(const Json& metric, std::string_view statistic) {
  const Json* const value = metric.Find(statistic);
  return value != nullptr && value->is_number() ? std::optional(value->number()) : std::nullopt;
}

// Factor to milliseconds; 1 for milliseconds and for units of no time.
double ToMs(const Json& metric) {
  const Json& unit = *metric.Find("unit");
  for (const Unit& known : kTimeUnits) {
    if (unit.is_string() && unit.string() == known.name) {
      return known.ms;
    }
  }
  return 1.0;
}

}  // namespace

bool IsAiperfExport(const Json& document) {
  return std::ranges::any_of(kMetrics, [&](const Metric& metric) {
    return FindMetric(Root(document), metric.theirs) != nullptr;
  });
}

NamedValues AiperfMetrics(const Json& document) {
  NamedValues values;
  for (const Metric& metric : kMetrics) {
    const Json* const found = FindMetric(Root(document), metric.theirs);
    if (found == nullptr) {
      continue;
    }
    for (const Statistic& statistic : kStatistics) {
      const std::optional<double> value = Number(*found, statistic.theirs);
      if (value && (metric.distribution || statistic.theirs == "avg")) {
        std::string name(metric.distribution ? statistic.prefix : "");
        name += metric.ours;
        values.emplace_back(std::move(name), *value * ToMs(*found));
      }
    }
  }
  return values;
}

}  // namespace dynosim::report
