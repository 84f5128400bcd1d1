// SPDX-License-Identifier: Apache-2.0
#include "report/html_page.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/result.h"
#include "engine/settings.h"
#include "engine/settings_decode.h"
#include "report/chrome_trace.h"
#include "report/configuration.h"
#include "report/json_report.h"
#include "report/json_writer.h"
#include "report/page_assets.h"
#include "report/page_passes.h"
#include "report/summary.h"
#include "scenario/scenario.h"
#include "sim/outcome.h"
#include "workload/request.h"

namespace dynosim::report {
namespace {

constexpr std::uint32_t kAbsent = std::numeric_limits<std::uint32_t>::max();
constexpr double kNever = std::numeric_limits<double>::quiet_NaN();

// Requests of the page: indices of records.
struct Rows {
  std::vector<std::size_t> indices;
  std::size_t step = 1;
  std::size_t unfinished = 0;
};

Rows RowsOf(const sim::Outcome& outcome, std::size_t limit) {
  Rows rows;
  for (std::size_t i = 0; i < outcome.records.size(); ++i) {
    if (outcome.records[i].terminal) {
      rows.indices.push_back(i);
    }
  }
  rows.unfinished = outcome.records.size() - rows.indices.size();
  if (rows.indices.size() > limit) {
    rows.step = (rows.indices.size() + limit - 1) / limit;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < rows.indices.size(); i += rows.step) {
      rows.indices[kept++] = rows.indices[i];
    }
    rows.indices.resize(kept);
  }
  return rows;
}

class RequestColumns {
 public:
  RequestColumns(JsonWriter& out, const ReportParts& parts, const Rows& rows)
      : out_(out), outcome_(parts.outcome), rows_(rows) {}

  void Write(bool handoff) {
    using Record = sim::RequestRecord;
    using Detail = sim::RequestDetail;
    Times("arrival", [](const Record& r, const Detail&) { return r.arrival_ms; });
    Times("admit",
          [](const Record& r, const Detail&) { return r.first_admit_ms.value_or(kNever); });
    Times("first", [](const Record& r, const Detail&) {
      return r.output_tokens > 0 ? r.first_token_ms : kNever;
    });
    Times("last", [](const Record& r, const Detail&) {
      return r.output_tokens > 0 ? r.last_token_ms : kNever;
    });
    Times("terminal", [](const Record& r, const Detail&) { return r.terminal_ms; });
    if (handoff) {
      Times("held",
            [](const Record&, const Detail& d) { return d.source_held_ms.value_or(kNever); });
      Times("transfer_start",
            [](const Record&, const Detail& d) { return d.transfer_start_ms.value_or(kNever); });
      Times("transfer_end",
            [](const Record&, const Detail& d) { return d.transfer_end_ms.value_or(kNever); });
      Times("decode_admit",
            [](const Record&, const Detail& d) { return d.decode_admit_ms.value_or(kNever); });
      Counts("prefill_rank",
             [](const Record&, const Detail& d) { return d.prefill_scheduler.value_or(kAbsent); });
    }
    Counts("id", [](const Record& r, const Detail&) { return r.id; });
    Counts("input", [](const Record& r, const Detail&) { return Narrow(r.prompt_tokens); });
    Counts("output", [](const Record& r, const Detail&) { return Narrow(r.output_tokens); });
    Counts("reused",
           [](const Record& r, const Detail&) { return Narrow(r.reused_tokens_prefill_max); });
    Counts("rank",
           [](const Record& r, const Detail&) { return r.decode_scheduler.value_or(kAbsent); });
    Column<std::uint8_t>("status",
                         [](const Record& r, const Detail&) { return StatusCode(r.status); });
    if (std::ranges::any_of(outcome_.records,
                            [](const Record& r) { return r.session != workload::kNone; })) {
      Counts("session", [](const Record& r, const Detail&) { return r.session; });
      Counts("turn", [](const Record& r, const Detail&) { return r.turn; });
    }
    std::vector<std::uint32_t> lanes;
    lanes.reserve(rows_.indices.size());
    const std::vector<std::uint32_t> all = RequestLanes(outcome_);
    for (const std::size_t i : rows_.indices) {
      lanes.push_back(all[i]);
    }
    out_.Key("lane");
    WriteColumn(out_, std::span<const std::uint32_t>(lanes));
  }

 private:
  // Place in kStatus of data.js.
  static std::uint8_t StatusCode(workload::TerminalStatus status) {
    switch (status) {
      case workload::TerminalStatus::kCompleted:
        return 0;
      case workload::TerminalStatus::kRejected:
        return 1;
      case workload::TerminalStatus::kFailed:
        return 2;
      case workload::TerminalStatus::kCanceled:
        return 3;
    }
    return 0;
  }
  static std::uint32_t Narrow(std::uint64_t value) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, kAbsent));
  }
  template <class T, class Get>
  void Column(std::string_view name, const Get& get) {
    static const sim::RequestDetail no_detail;
    std::vector<T> values;
    values.reserve(rows_.indices.size());
    for (const std::size_t i : rows_.indices) {
      values.push_back(
          get(outcome_.records[i], outcome_.details.empty() ? no_detail : outcome_.details[i]));
    }
    out_.Key(name);
    WriteColumn(out_, std::span<const T>(values));
  }
  template <class Get>
  void Times(std::string_view name, const Get& get) {
    Column<double>(name, get);
  }
  template <class Get>
  void Counts(std::string_view name, const Get& get) {
    Column<std::uint32_t>(name, get);
  }

  JsonWriter& out_;
  const sim::Outcome& outcome_;
  const Rows& rows_;
};

void WriteRequests(JsonWriter& out, const ReportParts& parts, const Rows& rows) {
  out.Key("requests");
  out.BeginObject();
  out.Key("rows");
  out.Integer(rows.indices.size());
  out.Key("step");
  out.Integer(rows.step);
  out.Key("columns");
  out.BeginObject();
  RequestColumns(out, parts, rows).Write(parts.scenario.disaggregated());
  out.EndObject();
  out.EndObject();
}

// Names of sessions that occur, by index; reasons of the first rejected requests, by row.
void WriteTexts(JsonWriter& out, const ReportParts& parts, const Rows& rows) {
  constexpr std::size_t kReasonsMax = 1000;
  std::map<std::uint32_t, std::string> sessions;
  std::map<std::size_t, std::string_view> reasons;
  for (std::size_t row = 0; row < rows.indices.size(); ++row) {
    const std::size_t i = rows.indices[row];
    if (parts.outcome.records[i].session != workload::kNone) {
      sessions.try_emplace(parts.outcome.records[i].session,
                           parts.session_names(parts.outcome.records[i].session));
    }
    if (!parts.outcome.details.empty() && reasons.size() < kReasonsMax &&
        !parts.outcome.details[i].rejection_reason.empty()) {
      reasons.emplace(row, parts.outcome.details[i].rejection_reason);
    }
  }
  out.Key("sessions");
  out.BeginObject();
  for (const auto& [session, name] : sessions) {
    out.Key(std::to_string(session));
    out.String(name);
  }
  out.EndObject();
  out.Key("reasons");
  out.BeginObject();
  for (const auto& [row, reason] : reasons) {
    out.Key(std::to_string(row));
    out.String(reason);
  }
  out.EndObject();
}

std::string EngineText(const engine::EngineSettings& settings, std::uint32_t workers,
                       std::string_view pool) {
  return fmt::format("{} {}worker{} of {}{}", workers, pool, workers == 1 ? "" : "s",
                     engine::BackendName(settings.backend),
                     settings.dp_size > 1 ? fmt::format(", {} ranks each", settings.dp_size) : "");
}

// What ran, in one line.
std::string Subtitle(const scenario::Scenario& s) {
  std::string text = s.prefill_engine && s.decode_engine
                         ? EngineText(*s.prefill_engine, s.num_prefill_workers, "prefill ") +
                               " and " +
                               EngineText(*s.decode_engine, s.num_decode_workers, "decode ")
                         : EngineText(s.engine, s.num_workers, "");
  if (s.workload.trace && !s.workload.trace->files.empty()) {
    const std::vector<std::string>& files = s.workload.trace->files;
    text += "; trace " + std::filesystem::path(files.front()).filename().string();
    text += files.size() > 1 ? fmt::format(" and {} more", files.size() - 1) : "";
  } else if (s.workload.synthetic) {
    text += fmt::format("; {} synthetic requests of {} input and {} output tokens",
                        s.workload.synthetic->request_count, s.workload.synthetic->input_tokens,
                        s.workload.synthetic->output_tokens);
  }
  return text;
}

void WriteRun(JsonWriter& out, const ReportParts& parts, const PageLimits& limits) {
  const sim::Outcome& outcome = parts.outcome;
  const scenario::Scenario& s = parts.scenario;
  const Rows rows = RowsOf(outcome, limits.requests);
  out.BeginObject();
  out.Key("summary");
  out.Value(SummaryJson(parts.summary));
  out.Key("configuration");
  out.Value(ConfigurationJson(s));
  out.Key("first_rejection");
  out.String(outcome.first_rejection_reason);
  out.Key("end_ms");
  out.Number(outcome.end_ms);
  out.Key("unfinished");
  out.Integer(rows.unfinished);
  // Schedulers are numbered worker * ranks + rank.
  out.Key("ranks");
  out.Integer(s.decode_engine ? s.decode_engine->dp_size : s.engine.dp_size);
  out.Key("prefill_ranks");
  out.Integer(s.prefill_engine ? s.prefill_engine->dp_size : 1);
  WriteRequests(out, parts, rows);
  WriteTexts(out, parts, rows);
  out.Key("passes");
  WritePagePasses(out, outcome, limits.passes);
  out.Key("telemetry");
  WritePageGauges(out, outcome, limits.gauges);
  out.EndObject();
}

void WriteSearch(JsonWriter& out, const SearchView& search) {
  out.BeginObject();
  out.Key("x_name");
  out.String(search.x_name);
  out.Key("y_name");
  out.String(search.y_name);
  out.Key("points");
  out.BeginArray();
  for (const SearchPoint& point : search.points) {
    out.BeginObject();
    out.Key("name");
    out.String(point.name);
    out.Key("x");
    out.Number(point.x);
    out.Key("y");
    out.Number(point.y);
    out.Key("on_front");
    out.Bool(point.on_front);
    out.Key("document");
    out.String(point.document);
    out.EndObject();
  }
  out.EndArray();
  out.EndObject();
}

// JSON inside a script element: a '<' can only be in a string, and could end the element.
void AppendEscaped(AtomicFile& file, std::string_view json) {
  while (true) {
    const std::size_t at = json.find('<');
    file.Append(json.substr(0, at));
    if (at == std::string_view::npos) {
      return;
    }
    file.Append("\\u003c");
    json.remove_prefix(at + 1);
  }
}

// Content of a placeholder of page.html other than the data.
std::string Filling(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kFiles = {
      {{"UPLOT_CSS", "uPlot.min.css"},
       {"PAGE_CSS", "page.css"},
       {"UPLOT_LICENSE", "LICENSE"},
       {"UPLOT_JS", "uPlot.iife.min.js"}}};
  for (const auto& [placeholder, file] : kFiles) {
    if (name == placeholder) {
      return std::string(PageAsset(file));
    }
  }
  std::string script;
  for (const char* file : {"data.js", "charts.js", "tables.js", "timeline.js", "main.js"}) {
    script += PageAsset(file);
  }
  return script;
}

}  // namespace

void WritePageData(JsonWriter& out, const HtmlPage& page, const PageLimits& limits) {
  out.BeginObject();
  out.Key("title");
  out.String(page.title);
  out.Key("subtitle");
  out.String(page.run != nullptr ? Subtitle(page.run->scenario) : "");
  out.Key("run");
  if (page.run != nullptr) {
    WriteRun(out, *page.run, limits);
  } else {
    out.Null();
  }
  out.Key("search");
  if (page.search != nullptr) {
    WriteSearch(out, *page.search);
  } else {
    out.Null();
  }
  out.EndObject();
}

Result<void> WriteHtmlPage(const std::string& path, const HtmlPage& page) {
  DYNO_TRY(AtomicFile file, AtomicFile::Create(path));
  // Placeholders are names between two '@'; the template has no other '@'.
  std::string_view rest = PageAsset("page.html");
  for (std::size_t at = rest.find('@'); at != std::string_view::npos; at = rest.find('@')) {
    file.Append(rest.substr(0, at));
    rest.remove_prefix(at + 1);
    const std::size_t end = rest.find('@');
    const std::string_view name = rest.substr(0, end);
    if (name == "DATA") {
      JsonWriter out({}, [&file](std::string_view text) { AppendEscaped(file, text); });
      WritePageData(out, page);
      out.Flush();
    } else {
      file.Append(Filling(name));
    }
    rest.remove_prefix(end + 1);
  }
  file.Append(rest);
  return file.Commit();
}

}  // namespace dynosim::report
