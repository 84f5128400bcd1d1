// SPDX-License-Identifier: Apache-2.0
#include "report/aiperf.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace dynosim::report {
namespace {

struct Metric {
  std::string_view theirs;
  std::string_view ours;
  bool distribution = false;  // `ours` gets a prefix for each statistic
};
constexpr std::array kMetrics = {
    Metric{"time_to_first_token", "ttft_ms", true},
    Metric{"time_to_second_token", "ttst_ms", true},
    Metric{"inter_token_latency", "tpot_ms", true},
    Metric{"request_latency", "e2e_latency_ms", true},
    Metric{"request_throughput", "request_throughput_rps"},
    Metric{"output_token_throughput", "output_throughput_tok_s"},
    Metric{"total_token_throughput", "total_throughput_tok_s"},
    Metric{"request_count", "completed_requests"},
    Metric{"total_isl", "total_input_tokens"},
    Metric{"total_osl", "total_output_tokens"},
    Metric{"benchmark_duration", "duration_ms"},
};

struct Statistic {
  std::string_view theirs;
  std::string_view prefix;
};
constexpr std::array kStatistics = {Statistic{"avg", "mean_"}, Statistic{"p50", "median_"},
                                    Statistic{"p75", "p75_"},  Statistic{"p90", "p90_"},
                                    Statistic{"p95", "p95_"},  Statistic{"p99", "p99_"}};

struct Unit {
  std::string_view name;
  double ms;
};
constexpr std::array kTimeUnits = {
    Unit{"s", 1e3},   Unit{"sec", 1e3},           Unit{"seconds", 1e3},     Unit{"us", 1e-3},
    Unit{"ns", 1e-6}, Unit{"microseconds", 1e-3}, Unit{"nanoseconds", 1e-6}};

// Metrics are members of the document, in old versions of its member `records`.
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
