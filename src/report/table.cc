// SPDX-License-Identifier: Apache-2.0
// All cells are ASCII, so a cell is as wide as it has bytes; only the border is not.
#include "report/table.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "report/quantiles.h"
#include "report/summary.h"

namespace dynosim::report {
namespace {

constexpr std::string_view kTitle = "dynosim | LLM Metrics";
constexpr std::size_t kColumns = 8;
using Cells = std::array<std::string, kColumns>;

struct Border {
  std::string_view left, middle, right;
};
constexpr Border kTop = {.left = "\u250F", .middle = "\u2533", .right = "\u2513"};
constexpr Border kUnderHeader = {.left = "\u2521", .middle = "\u2547", .right = "\u2529"};
constexpr Border kBottom = {.left = "\u2514", .middle = "\u2534", .right = "\u2518"};
constexpr std::string_view kHorizontal = "\u2501";
constexpr std::string_view kVertical = "\u2503";

// Two decimals, thousands separated by commas.
std::string NumberText(double value) {
  std::string text = fmt::format("{:.2f}", value);
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  std::size_t at = text.find('.');
  if (at == std::string::npos) {
    return text;  // not a finite number
  }
  while (at > first + 3) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

Cells DistributionRow(std::string name, const Distribution& values) {
  return {std::move(name),        NumberText(values.mean),     NumberText(values.min),
          NumberText(values.max), NumberText(values.p99),      NumberText(values.p90),
          NumberText(values.p75), NumberText(values.deviation)};
}

Cells SingleRow(std::string name, double value) {
  return {std::move(name), NumberText(value), "N/A", "N/A", "N/A", "N/A", "N/A", "N/A"};
}

// Those that a time limit found in the queue or under way.
std::uint64_t Unfinished(const Summary& summary) {
  const std::uint64_t ended = summary.completed_requests + summary.rejected_requests;
  return summary.num_requests - std::min(ended, summary.num_requests);
}

std::vector<Cells> Rows(const Summary& summary) {
  std::vector<Cells> rows = {
      {"Metric", "avg", "min", "max", "p99", "p90", "p75", "std"},
      DistributionRow("Time to First Token (ms)", summary.ttft_ms),
      DistributionRow("Time to Second Token (ms)", summary.ttst_ms),
      DistributionRow("Request Latency (ms)", summary.e2e_latency_ms),
      DistributionRow("Inter Token Latency (ms)", summary.gaps.gap_ms),
      DistributionRow("Output Token Throughput Per User (tokens/sec/user)",
                      summary.gaps.tokens_per_second),
      SingleRow("Output Token Throughput (tokens/sec)", summary.output_throughput_tok_s),
      SingleRow("Request Throughput (requests/sec)", summary.request_throughput_rps),
      SingleRow("Request Count (requests)", static_cast<double>(summary.completed_requests)),
  };
  if (summary.rejected_requests > 0) {
    rows.push_back(
        SingleRow("Rejected Requests (requests)", static_cast<double>(summary.rejected_requests)));
  }
  if (Unfinished(summary) > 0) {
    rows.push_back(
        SingleRow("Unfinished Requests (requests)", static_cast<double>(Unfinished(summary))));
  }
  return rows;
}

using Widths = std::array<std::size_t, kColumns>;

std::string BorderLine(const Border& border, const Widths& widths) {
  std::string line(border.left);
  for (std::size_t column = 0; column < kColumns; ++column) {
    line += column > 0 ? border.middle : "";
    for (std::size_t i = 0; i < widths[column] + 2; ++i) {
      line += kHorizontal;
    }
  }
  line += border.right;
  return line;
}

std::string CellLine(const Cells& cells, const Widths& widths) {
  std::string line(kVertical);
  for (std::size_t column = 0; column < kColumns; ++column) {
    line += column == 0 ? fmt::format(" {:<{}} ", cells[column], widths[column])
                        : fmt::format(" {:>{}} ", cells[column], widths[column]);
    line += kVertical;
  }
  return line;
}

}  // namespace

std::string RenderTable(const Summary& summary) {
  const std::vector<Cells> rows = Rows(summary);
  Widths widths{};
  for (const Cells& row : rows) {
    for (std::size_t column = 0; column < kColumns; ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  std::string text(kTitle);
  const auto add_line = [&text](std::string_view line) {
    text += '\n';
    text += line;
  };
  add_line(BorderLine(kTop, widths));
  add_line(CellLine(rows.front(), widths));
  add_line(BorderLine(kUnderHeader, widths));
  for (std::size_t i = 1; i < rows.size(); ++i) {
    add_line(CellLine(rows[i], widths));
  }
  add_line(BorderLine(kBottom, widths));
  if (summary.rejected_requests > 0 && !summary.first_rejection_reason.empty()) {
    add_line("First Rejection Reason: " + summary.first_rejection_reason);
  }
  add_line("First Admission Prefix Cache Reused Ratio: " +
           NumberText(summary.first_admission_prefix_cache_reused_ratio));
  add_line("Prefix Cache Reused Ratio: " + NumberText(summary.prefix_cache_reused_ratio));
  add_line("Wall Time (ms): " + NumberText(summary.wall_time_ms));
  return text;
}

}  // namespace dynosim::report
