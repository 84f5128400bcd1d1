// SPDX-License-Identifier: Apache-2.0
// Compares two result files: reports of this program (or of the reference), or a report with the
// profile_export_aiperf.json of a measurement. Metrics are compared by the name that they have in
// our summary; machine time is left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace dynosim::report {

struct CompareOptions {
  double tolerance = 0.0;           // largest allowed |b - a| / |a|
  std::vector<std::string> only{};  // metrics whose name contains one of these; empty: all
};

struct MetricDifference {
  std::string name;
  double a = 0.0;
  double b = 0.0;
  // (b - a) / |a|; 0 if both are equal, infinite if only a is zero.
  double relative = 0.0;
  bool within = true;
};

// One value that is not the same; absent ones print as "-".
struct ValueDifference {
  std::string name;
  std::string a, b;
};

struct RequestDifference {
  std::string name;  // request id, session and turn, or uuid
  double arrival_ms = 0.0;
  std::vector<ValueDifference> values;
};

struct Comparison {
  std::vector<MetricDifference> metrics;  // those that both files have, in the order of `a`
  std::vector<std::string> only_in_a, only_in_b;
  std::vector<ValueDifference> configuration;  // only of two reports
  std::uint64_t requests = 0;                  // that were compared; 0 without rows in both files
  std::uint64_t diverging_requests = 0;
  std::optional<RequestDifference> first_diverging;  // the earliest arrival
  bool within = true;  // the verdict: metrics, and requests too if the tolerance is zero
};

// Error if the two have no metric in common, or if `only` names none.
Result<Comparison> CompareReports(const Json& a, const Json& b, const CompareOptions& options);

// The comparison for readers, with a line feed at the end, and as a value. `all`: also metrics that
// do not differ.
std::string ComparisonText(const Comparison& comparison, const CompareOptions& options, bool all);
Json ComparisonJson(const Comparison& comparison, const CompareOptions& options);

}  // namespace dynosim::report
