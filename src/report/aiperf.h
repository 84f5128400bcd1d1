// SPDX-License-Identifier: Apache-2.0
// profile_export_aiperf.json: the summary that AIPerf writes after a measurement. Every metric is
// an object with a unit and statistics; all of them are optional, and unknown ones are skipped.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace dynosim::report {

// Metrics under the names of our summary, in its units.
using NamedValues = std::vector<std::pair<std::string, double>>;

// Whether a document looks like such a file.
bool IsAiperfExport(const Json& document);

// Means and percentiles of latencies, rates and counts. AIPerf's inter-token latency is the mean
// gap of a request, which we call tpot. Extremes and deviations are left out: one slow request
// decides the former, and the latter are sample deviations there. So is the rate per user, which is
// pooled over gaps here and over requests there.
NamedValues AiperfMetrics(const Json& document);

}  // namespace dynosim::report
