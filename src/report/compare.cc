// SPDX-License-Identifier: Apache-2.0
// Differences of one part in 10^9 are round-off of another program and count as none.
#include "report/compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/result.h"
#include "report/aiperf.h"

namespace dynosim::report {
namespace {

constexpr double kRoundOff = 1e-9;

// Real time of the machine that ran the simulation.
constexpr std::array<std::string_view, 3> kMachineTime = {"wall_time_ms", "processed_tokens_per_s",
                                                          "processed_output_tokens_per_s"};

// Members of a row that tell what happened to a request, in the order in which it happens.
constexpr std::array<std::string_view, 20> kRowValues = {
    "arrival_time_ms",         "input_length",
    "first_admit_ms",          "reused_input_tokens",
    "prefill_worker_idx",      "prefill_admit_ms",
    "source_held_ms",          "decode_worker_idx",
    "destination_reserved_ms", "destination_activated_ms",
    "decode_admit_ms",         "decode_reused_input_tokens",
    "first_token_ms",          "ttst_ms",
    "last_token_ms",           "source_released_ms",
    "output_length",           "admission_count",
    "terminal_time_ms",        "terminal_status"};

// The reference puts the summary into a member of its own.
const Json& SummaryOf(Json&&) = delete;
const Json& SummaryOf(const Json& report) {
  const Json* const summary = report.Find("summary");
  return summary != nullptr && summary->is_object() ? *summary : report;
}

NamedValues MetricsOf(const Json& document) {
  if (IsAiperfExport(document)) {
    return AiperfMetrics(document);
  }
  NamedValues values;
  for (const Json::Member& member : SummaryOf(document).object()) {
    if (member.second.is_number() &&
        std::ranges::find(kMachineTime, member.first) == kMachineTime.end()) {
      values.emplace_back(member.first, member.second.number());
    }
  }
  return values;
}

bool Wanted(const std::string& name, const CompareOptions& options) {
  return options.only.empty() || std::ranges::any_of(options.only, [&](const std::string& part) {
           return name.find(part) != std::string::npos;
         });
}

MetricDifference Difference(std::string name, double a, double b, double tolerance) {
  MetricDifference d{.name = std::move(name), .a = a, .b = b};
  if (a != b) {
    d.relative = a == 0.0 ? std::copysign(std::numeric_limits<double>::infinity(), b)
                          : (b - a) / std::abs(a);
  }
  d.within = std::abs(d.relative) <= std::max(tolerance, kRoundOff);
  return d;
}

void CompareMetrics(const NamedValues& a, const NamedValues& b, const CompareOptions& options,
                    Comparison& out) {
  std::map<std::string_view, double> of_b;
  for (const auto& [name, value] : b) {
    of_b.emplace(name, value);
  }
  for (const auto& [name, value] : a) {
    const auto found = of_b.find(name);
    if (found == of_b.end()) {
      out.only_in_a.push_back(name);
      continue;
    }
    if (Wanted(name, options)) {
      out.metrics.push_back(Difference(name, value, found->second, options.tolerance));
      out.within = out.within && out.metrics.back().within;
    }
    of_b.erase(found);
  }
  for (const auto& [name, value] : b) {
    if (of_b.contains(name)) {
      out.only_in_b.push_back(name);
    }
  }
}

std::string ValueText(const Json* value) {
  return value == nullptr ? "-" : value->is_string() ? value->string() : DumpJson(*value);
}

void CompareConfigurations(const Json* a, const Json* b, const std::string& path,
                           std::vector<ValueDifference>& out) {
  const bool a_object = a != nullptr && a->is_object();
  const bool b_object = b != nullptr && b->is_object();
  if (!a_object || !b_object) {
    if (a == nullptr || b == nullptr || *a != *b) {
      out.push_back({.name = path, .a = ValueText(a), .b = ValueText(b)});
    }
    return;
  }
  const auto below = [&path](const std::string& key) {
    return path.empty() ? key : path + "." + key;
  };
  for (const Json::Member& member : a->object()) {
    CompareConfigurations(&member.second, b->Find(member.first), below(member.first), out);
  }
  for (const Json::Member& member : b->object()) {
    if (a->Find(member.first) == nullptr) {
      CompareConfigurations(nullptr, &member.second, below(member.first), out);
    }
  }
}

const Json::Array* RowsOf(const Json& report) {
  const Json* const rows = report.Find("per_request");
  return rows != nullptr && rows->is_array() ? &rows->array() : nullptr;
}

const Json* Text(const Json& row, std::string_view key) {
  const Json* const value = row.is_object() ? row.Find(key) : nullptr;
  return value != nullptr && value->is_string() ? value : nullptr;
}

// What names a request in both files.
std::string NameOf(const Json& row) {
  if (const Json* const id = Text(row, "request_id")) {
    return "request " + id->string();
  }
  const Json* const turn = row.is_object() ? row.Find("turn_index") : nullptr;
  if (const Json* const session = Text(row, "session_id"); session != nullptr && turn != nullptr) {
    return "session " + session->string() + " turn " + DumpJson(*turn);
  }
  const Json* const uuid = Text(row, "uuid");
  return uuid == nullptr ? "" : "request " + uuid->string();
}

double ArrivalOf(const Json& row) {
  const Json* const at = row.is_object() ? row.Find("arrival_time_ms") : nullptr;
  return at != nullptr && at->is_number() ? at->number() : 0.0;
}

bool SameValue(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) {
    return std::abs(a.number() - b.number()) <= kRoundOff * std::abs(a.number());
  }
  return a == b;
}

std::vector<ValueDifference> RowDifferences(const Json& a, const Json& b) {
  static const Json null;
  std::vector<ValueDifference> out;
  for (const std::string_view key : kRowValues) {
    const Json* const left = a.is_object() ? a.Find(key) : nullptr;
    const Json* const right = b.is_object() ? b.Find(key) : nullptr;
    if (!SameValue(left != nullptr ? *left : null, right != nullptr ? *right : null)) {
      out.push_back({.name = std::string(key), .a = ValueText(left), .b = ValueText(right)});
    }
  }
  return out;
}

void AddDiverging(const Json& row, std::vector<ValueDifference> values, Comparison& out) {
  ++out.diverging_requests;
  const double arrival_ms = ArrivalOf(row);
  if (!out.first_diverging || arrival_ms < out.first_diverging->arrival_ms) {
    out.first_diverging = RequestDifference{
        .name = NameOf(row), .arrival_ms = arrival_ms, .values = std::move(values)};
  }
}

// Rows with the same name belong together; if no name is in both files, rows at the same place do.
void CompareRows(const Json::Array& a, const Json::Array& b, Comparison& out) {
  std::map<std::string, std::size_t> of_b;
  for (std::size_t i = 0; i < b.size(); ++i) {
    of_b.emplace(NameOf(b[i]), i);
  }
  const bool named =
      std::ranges::any_of(a, [&](const Json& row) { return of_b.contains(NameOf(row)); });
  std::vector<bool> matched(b.size(), false);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto found = named ? of_b.find(NameOf(a[i])) : of_b.end();
    const std::size_t at = !named ? i : found != of_b.end() ? found->second : b.size();
    if (at >= b.size()) {
      AddDiverging(a[i], {{.name = "row", .a = "present", .b = "absent"}}, out);
      continue;
    }
    matched[at] = true;
    ++out.requests;
    if (std::vector<ValueDifference> values = RowDifferences(a[i], b[at]); !values.empty()) {
      AddDiverging(a[i], std::move(values), out);
    }
  }
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (!matched[i]) {
      AddDiverging(b[i], {{.name = "row", .a = "absent", .b = "present"}}, out);
    }
  }
}

std::string RelativeText(double relative) {
  return std::isinf(relative) ? "from zero" : fmt::format("{:+.3f} %", relative * 100.0);
}

// "over" marks what exceeds a tolerance; without one every line would have the mark.
std::string MetricsText(const Comparison& comparison, const CompareOptions& options, bool all) {
  std::size_t width = 6;
  for (const MetricDifference& d : comparison.metrics) {
    width = std::max(width, d.name.size());
  }
  std::string text;
  for (const MetricDifference& d : comparison.metrics) {
    if (all || std::abs(d.relative) > kRoundOff) {
      text += fmt::format("  {:<{}}  {:>16.6g}  {:>16.6g}  {:>12}{}\n", d.name, width, d.a, d.b,
                          RelativeText(d.relative),
                          d.within || options.tolerance == 0.0 ? "" : "  over");
    }
  }
  if (!text.empty()) {
    text.insert(0, fmt::format("  {:<{}}  {:>16}  {:>16}  {:>12}\n", "metric", width, "A", "B",
                               "B against A"));
  }
  return text;
}

std::string ValuesText(const std::vector<ValueDifference>& values) {
  std::string text;
  for (const ValueDifference& value : values) {
    text += fmt::format("  {}: {} -> {}\n", value.name, value.a, value.b);
  }
  return text;
}

std::string RequestsText(const Comparison& comparison) {
  if (!comparison.first_diverging) {
    return comparison.requests == 0
               ? ""
               : fmt::format("All {} requests are equal.\n", comparison.requests);
  }
  const RequestDifference& first = *comparison.first_diverging;
  return fmt::format("{} of {} requests differ. The first: {}, arrived at {} ms\n",
                     comparison.diverging_requests, comparison.requests, first.name,
                     first.arrival_ms) +
         ValuesText(first.values);
}

Json ValuesJson(const std::vector<ValueDifference>& values) {
  Json::Array list;
  for (const ValueDifference& value : values) {
    Json json;
    json.Add("name", value.name);
    json.Add("a", value.a);
    json.Add("b", value.b);
    list.push_back(std::move(json));
  }
  return list;
}

Json NamesJson(const std::vector<std::string>& names) {
  return Json::Array(names.begin(), names.end());
}

std::uint64_t CountOver(const Comparison& comparison) {
  return static_cast<std::uint64_t>(std::ranges::count(
      comparison.metrics, false, [](const MetricDifference& d) { return d.within; }));
}

}  // namespace

Result<Comparison> CompareReports(const Json& a, const Json& b, const CompareOptions& options) {
  if (!a.is_object() || !b.is_object()) {
    return UsageError(a.is_object() ? "B" : "A", "is no report: a JSON object is needed");
  }
  Comparison out;
  CompareMetrics(MetricsOf(a), MetricsOf(b), options, out);
  if (out.metrics.empty()) {
    return options.only.empty()
               ? UsageError("", "the two files have no metric in common")
               : UsageError("--metric", "no metric of both files has a name like that");
  }
  // A measurement has a part of the metrics only, and knows no configuration of ours.
  if (IsAiperfExport(a) || IsAiperfExport(b)) {
    out.only_in_a.clear();
    out.only_in_b.clear();
    return out;
  }
  const Json* const left = a.Find("configuration");
  const Json* const right = b.Find("configuration");
  if (left != nullptr && right != nullptr) {
    CompareConfigurations(left, right, "", out.configuration);
  }
  const Json::Array* const rows_a = RowsOf(a);
  const Json::Array* const rows_b = RowsOf(b);
  if (rows_a != nullptr && rows_b != nullptr) {
    CompareRows(*rows_a, *rows_b, out);
    if (options.tolerance == 0.0 && options.only.empty() && out.diverging_requests > 0) {
      out.within = false;
    }
  }
  return out;
}

std::string ComparisonText(const Comparison& comparison, const CompareOptions& options, bool all) {
  std::string text;
  if (!comparison.configuration.empty()) {
    text += "Configurations differ:\n" + ValuesText(comparison.configuration);
  }
  text += MetricsText(comparison, options, all);
  for (const auto& [names, file] :
       {std::pair(&comparison.only_in_a, "A"), std::pair(&comparison.only_in_b, "B")}) {
    if (!names->empty()) {
      text += fmt::format("Only in {}: {}\n", file, fmt::join(*names, ", "));
    }
  }
  text += RequestsText(comparison);
  const std::uint64_t over = CountOver(comparison);
  const std::string bound = options.tolerance == 0.0
                                ? std::string("equal")
                                : fmt::format("within {:g} %", options.tolerance * 100.0);
  if (comparison.within) {
    return text + fmt::format("OK: all {} metrics are {}.\n", comparison.metrics.size(), bound);
  }
  return text + (over > 0 ? fmt::format("DIFFERENT: {} of {} metrics are not {}.\n", over,
                                        comparison.metrics.size(), bound)
                          : std::string("DIFFERENT: metrics are equal, requests are not.\n"));
}

Json ComparisonJson(const Comparison& comparison, const CompareOptions& options) {
  Json json;
  json.Add("within", comparison.within);
  json.Add("tolerance", options.tolerance);
  Json::Array metrics;
  for (const MetricDifference& d : comparison.metrics) {
    Json metric;
    metric.Add("name", d.name);
    metric.Add("a", d.a);
    metric.Add("b", d.b);
    metric.Add("relative", d.relative);
    metric.Add("within", d.within);
    metrics.push_back(std::move(metric));
  }
  json.Add("metrics", std::move(metrics));
  json.Add("only_in_a", NamesJson(comparison.only_in_a));
  json.Add("only_in_b", NamesJson(comparison.only_in_b));
  json.Add("configuration", ValuesJson(comparison.configuration));
  json.Add("requests", comparison.requests);
  json.Add("diverging_requests", comparison.diverging_requests);
  Json first;
  if (comparison.first_diverging) {
    first.Add("name", comparison.first_diverging->name);
    first.Add("arrival_ms", comparison.first_diverging->arrival_ms);
    first.Add("values", ValuesJson(comparison.first_diverging->values));
  }
  json.Add("first_diverging", std::move(first));
  return json;
}

}  // namespace dynosim::report
