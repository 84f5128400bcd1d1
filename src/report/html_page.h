// SPDX-License-Identifier: Apache-2.0
// One self-contained page about a run, a search, or both: charts, a timeline, and where each
// request's time went. It opens offline in any current browser. The page itself is in report/page/
// and third_party/uplot/, which the build puts into the program; this writes the data into it.
//
// Rows travel as columns of binary numbers in base64. What would be too much for a browser is
// thinned, and the page says so: requests evenly, neighbouring passes merged, samples evenly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/json_report.h"
#include "report/json_writer.h"

namespace dynosim::report {

// A configuration that a search has tried.
struct SearchPoint {
  std::string name;
  double x = 0.0;
  double y = 0.0;
  bool on_front = false;
  std::string document;  // shown when the point is chosen
};

struct SearchView {
  std::string x_name, y_name;  // with units
  std::vector<SearchPoint> points;
};

struct HtmlPage {
  std::string title;
  const ReportParts* run = nullptr;  // its outcome has details and passes (Scenario::timeline)
  const SearchView* search = nullptr;
};

// Most rows that a page holds of each kind.
struct PageLimits {
  std::size_t requests = 200'000;
  std::size_t passes = 100'000;
  std::size_t gauges = 100'000;  // samples times ranks
};

// The data of the page as one JSON object.
void WritePageData(JsonWriter& out, const HtmlPage& page, const PageLimits& limits = {});

// The file appears whole or not at all; parent directories are made.
Result<void> WriteHtmlPage(const std::string& path, const HtmlPage& page);

}  // namespace dynosim::report
