// SPDX-License-Identifier: Apache-2.0
// The members of the file are sorted here; rows and samples are streamed into it one by one.
#include "report/json_report.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/result.h"
#include "report/configuration.h"
#include "report/json_writer.h"
#include "report/per_request.h"
#include "report/summary.h"
#include "report/telemetry.h"

namespace dynosim::report {
namespace {

// The member that ends the file.
constexpr std::string_view kRuntimeKey = "runtime";

struct ReportMember {
  std::string key;
  std::function<void(JsonWriter&)> write;
};

void WriteRows(JsonWriter& out, const ReportParts& parts) {
  out.BeginArray();
  for (std::size_t i = 0; i < parts.outcome.records.size(); ++i) {
    if (parts.outcome.records[i].terminal) {
      WriteRow(out, parts.outcome, i, parts.session_names, parts.agentic);
    }
  }
  out.EndArray();
}

void WriteTelemetry(JsonWriter& out, const ReportParts& parts) {
  out.BeginObject();
  out.Key("sample_interval_ms");
  out.Number(parts.scenario.telemetry.sample_interval_ms);
  out.Key("samples");
  out.BeginArray();
  for (const sim::TelemetrySample& sample : parts.outcome.telemetry) {
    WriteSample(out, sample);
  }
  out.EndArray();
  out.EndObject();
}

Json CoverageJson(const ReportParts& parts) {
  const bool captured = parts.scenario.capture_per_request;
  Json json;
  json.Add("capture_per_request", captured);
  json.Add("capture_planner_details", false);
  json.Add("per_request_records", captured ? Json(RowCount(parts.outcome)) : Json(0));
  return json;
}

std::vector<ReportMember> Members(const ReportParts& parts) {
  std::vector<ReportMember> members;
  const auto add_value = [&members](std::string key, Json value) {
    members.push_back({.key = std::move(key),
                       .write = [held = std::move(value)](JsonWriter& out) { out.Value(held); }});
  };
  Json summary = SummaryJson(parts.summary);
  for (Json::Member& member : summary.object()) {
    add_value(std::move(member.first), std::move(member.second));
  }
  add_value("coverage", CoverageJson(parts));
  add_value("configuration", ConfigurationJson(parts.scenario));
  if (parts.scenario.capture_per_request) {
    members.push_back(
        {.key = "per_request", .write = [&parts](JsonWriter& out) { WriteRows(out, parts); }});
  }
  if (parts.scenario.telemetry.capture) {
    members.push_back(
        {.key = "telemetry", .write = [&parts](JsonWriter& out) { WriteTelemetry(out, parts); }});
  }
  std::ranges::sort(members, [](const ReportMember& a, const ReportMember& b) {
    const bool a_ends = a.key == kRuntimeKey;
    const bool b_ends = b.key == kRuntimeKey;
    return a_ends != b_ends ? b_ends : a.key < b.key;
  });
  return members;
}

}  // namespace

void WriteReport(JsonWriter& out, const ReportParts& parts) {
  out.BeginObject();
  for (const ReportMember& member : Members(parts)) {
    out.Key(member.key);
    member.write(out);
  }
  out.EndObject();
  out.EndLine();
}

namespace {

Result<AtomicFile> FilledReport(const std::string& path, const ReportParts& parts) {
  DYNO_TRY(AtomicFile file, AtomicFile::Create(path));
  JsonWriter out({.indent = 2, .sort_keys = true},
                 [&file](std::string_view text) { file.Append(text); });
  WriteReport(out, parts);
  out.Flush();
  return file;
}

}  // namespace

Result<void> WriteJsonReport(const std::string& path, const ReportParts& parts) {
  DYNO_TRY(AtomicFile file, FilledReport(path, parts));
  return file.Commit();
}

Result<std::string> WriteNewJsonReport(const std::string& path, const ReportParts& parts) {
  DYNO_TRY(AtomicFile file, FilledReport(path, parts));
  return file.CommitBeside();
}

}  // namespace dynosim::report
