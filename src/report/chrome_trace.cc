// SPDX-License-Identifier: Apache-2.0
#include "report/chrome_trace.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/atomic_file.h"
#include "base/result.h"
#include "report/json_writer.h"
#include "report/latency.h"
#include "report/per_request.h"
#include "report/status_name.h"
#include "report/time_parts.h"
#include "sim/outcome.h"
#include "workload/request.h"

namespace dynosim::report {
namespace {

constexpr std::uint64_t kRequestsProcess = 1;
constexpr double kMicrosPerMs = 1000.0;

using WorkerKey = std::pair<sim::Pool, std::uint32_t>;

std::string WorkerName(const WorkerKey& key) {
  constexpr std::array<std::string_view, 3> kPrefix = {"", "prefill ", "decode "};
  return fmt::format("{}worker {}", kPrefix[static_cast<std::size_t>(key.first)], key.second);
}

// Process ids of workers in pool order.
std::map<WorkerKey, std::uint64_t> WorkerProcesses(const sim::Outcome& outcome) {
  std::map<WorkerKey, std::uint64_t> processes;
  for (const sim::PassRecord& pass : outcome.passes) {
    processes.emplace(WorkerKey(pass.pool, pass.worker), 0);
  }
  std::uint64_t next = kRequestsProcess;
  for (auto& process : processes) {
    process.second = ++next;
  }
  return processes;
}

void Member(JsonWriter& out, std::string_view key, std::string_view text) {
  out.Key(key);
  out.String(text);
}

void Member(JsonWriter& out, std::string_view key, std::uint64_t value) {
  out.Key(key);
  out.Integer(value);
}

// A metadata event: the name of a process or thread.
void WriteName(JsonWriter& out, std::string_view what, std::uint64_t process, std::uint64_t thread,
               std::string_view name) {
  out.BeginObject();
  Member(out, "name", what);
  Member(out, "ph", "M");
  Member(out, "pid", process);
  Member(out, "tid", thread);
  out.Key("args");
  out.BeginObject();
  Member(out, "name", name);
  out.EndObject();
  out.EndObject();
}

struct Slice {
  std::string_view name;
  std::string_view category;
  std::uint64_t process = 0;
  std::uint64_t thread = 0;
  double from_ms = 0.0;
  double to_ms = 0.0;
};

// A complete event up to its arguments; the caller closes it.
void OpenSlice(JsonWriter& out, const Slice& slice) {
  out.BeginObject();
  Member(out, "name", slice.name);
  Member(out, "cat", slice.category);
  Member(out, "ph", "X");
  Member(out, "pid", slice.process);
  Member(out, "tid", slice.thread);
  out.Key("ts");
  out.Number(slice.from_ms * kMicrosPerMs);
  out.Key("dur");
  // The difference of the rounded ends, so that slices that touch do not overlap.
  out.Number(slice.to_ms * kMicrosPerMs - slice.from_ms * kMicrosPerMs);
}

void WriteRequest(JsonWriter& out, const sim::Outcome& outcome, std::size_t index,
                  std::uint64_t lane, const SessionNames& session_names) {
  static const sim::RequestDetail no_detail;
  const sim::RequestRecord& record = outcome.records[index];
  const sim::RequestDetail& detail = outcome.details.empty() ? no_detail : outcome.details[index];
  const std::vector<PhaseSpan> spans = PhasesOf(record, detail);
  const std::string name = fmt::format("request {}", std::uint64_t{record.id} + 1);
  OpenSlice(out, {.name = name,
                  .category = "request",
                  .process = kRequestsProcess,
                  .thread = lane + 1,
                  .from_ms = spans.front().from_ms,
                  .to_ms = spans.back().to_ms});
  out.Key("args");
  out.BeginObject();
  Member(out, "uuid", RequestUuid(record.id));
  if (record.session != workload::kNone) {
    Member(out, "session", session_names(record.session));
  }
  if (record.turn != workload::kNone) {
    Member(out, "turn", record.turn);
  }
  Member(out, "status", StatusName(record.status));
  Member(out, "input_length", record.prompt_tokens);
  Member(out, "output_length", record.output_tokens);
  Member(out, "reused_input_tokens", record.reused_tokens_prefill_max);
  out.Key("ttft_ms");
  out.NumberOrNull(TtftMs(record));
  out.Key("prefill_scheduler");
  out.IntegerOrNull(detail.prefill_scheduler);
  out.Key("decode_scheduler");
  out.IntegerOrNull(record.decode_scheduler);
  out.EndObject();
  out.EndObject();
  for (const PhaseSpan& span : spans) {
    if (span.to_ms > span.from_ms) {
      OpenSlice(out, {.name = PhaseName(span.phase),
                      .category = "phase",
                      .process = kRequestsProcess,
                      .thread = lane + 1,
                      .from_ms = span.from_ms,
                      .to_ms = span.to_ms});
      out.EndObject();
    }
  }
}

std::string_view PassName(const sim::PassRecord& pass) {
  const bool prefill = pass.prefill_tokens > 0;
  return prefill && pass.requests > 0 ? "prefill and decode" : prefill ? "prefill" : "decode";
}

void WritePass(JsonWriter& out, const sim::PassRecord& pass, std::uint64_t process) {
  OpenSlice(out, {.name = PassName(pass),
                  .category = "pass",
                  .process = process,
                  .thread = 1,
                  .from_ms = pass.start_ms,
                  .to_ms = pass.end_ms});
  out.Key("args");
  out.BeginObject();
  Member(out, "prefill_tokens", pass.prefill_tokens);
  Member(out, "requests_with_tokens", pass.requests);
  out.EndObject();
  out.EndObject();
}

using Gauge = std::pair<std::string_view, std::uint64_t>;

void WriteCounter(JsonWriter& out, const std::string& name, std::uint64_t process, double at_ms,
                  const std::array<Gauge, 2>& gauges) {
  out.BeginObject();
  Member(out, "name", name);
  Member(out, "ph", "C");
  Member(out, "pid", process);
  out.Key("ts");
  out.Number(at_ms * kMicrosPerMs);
  out.Key("args");
  out.BeginObject();
  for (const Gauge& gauge : gauges) {
    Member(out, gauge.first, gauge.second);
  }
  out.EndObject();
  out.EndObject();
}

void WriteCounters(JsonWriter& out, const sim::Outcome& outcome,
                   const std::map<WorkerKey, std::uint64_t>& processes) {
  // Aggregated runs report through the decode fields.
  const bool aggregated =
      outcome.passes.empty() || outcome.passes[0].pool == sim::Pool::kAggregated;
  const sim::Pool decode_pool = aggregated ? sim::Pool::kAggregated : sim::Pool::kDecode;
  for (const sim::TelemetrySample& sample : outcome.telemetry) {
    for (const auto& [rows, pool] : {std::pair(&sample.prefill_schedulers, sim::Pool::kPrefill),
                                     std::pair(&sample.decode_schedulers, decode_pool)}) {
      for (const sim::SchedulerSample& row : *rows) {
        const auto process = processes.find({pool, row.worker});
        if (process == processes.end()) {
          continue;  // it made no pass
        }
        WriteCounter(out, fmt::format("rank {} requests", row.dp_rank), process->second,
                     sample.sampled_at_ms,
                     {{{"running", row.running_requests}, {"waiting", row.waiting_requests}}});
        WriteCounter(out, fmt::format("rank {} KV blocks", row.dp_rank), process->second,
                     sample.sampled_at_ms,
                     {{{"active", row.active_blocks}, {"cached", row.inactive_blocks}}});
      }
    }
  }
}

double EndOf(const sim::Outcome& outcome, std::size_t index) {
  const sim::RequestRecord& record = outcome.records[index];
  return std::max(record.terminal_ms, record.arrival_ms);
}

}  // namespace

std::vector<std::uint32_t> RequestLanes(const sim::Outcome& outcome) {
  std::vector<std::uint32_t> lanes(outcome.records.size(), 0);
  std::vector<std::size_t> order(lanes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return outcome.records[i].arrival_ms; });
  using Busy = std::pair<double, std::uint32_t>;
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;  // by end
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free;
  std::uint32_t used = 0;
  for (const std::size_t i : order) {
    if (!outcome.records[i].terminal) {
      continue;
    }
    while (!busy.empty() && busy.top().first <= outcome.records[i].arrival_ms) {
      free.push(busy.top().second);
      busy.pop();
    }
    if (free.empty()) {
      free.push(used++);
    }
    lanes[i] = free.top();
    free.pop();
    busy.emplace(EndOf(outcome, i), lanes[i]);
  }
  return lanes;
}

void WriteChromeTrace(JsonWriter& out, const sim::Outcome& outcome,
                      const SessionNames& session_names) {
  const std::map<WorkerKey, std::uint64_t> processes = WorkerProcesses(outcome);
  const std::vector<std::uint32_t> lanes = RequestLanes(outcome);
  out.BeginObject();
  Member(out, "displayTimeUnit", "ms");
  out.Key("traceEvents");
  out.BeginArray();
  WriteName(out, "process_name", kRequestsProcess, 0, "requests");
  for (const auto& [key, process] : processes) {
    WriteName(out, "process_name", process, 0, WorkerName(key));
    WriteName(out, "thread_name", process, 1, "passes");
  }
  const std::uint32_t lane_count = lanes.empty() ? 0 : *std::ranges::max_element(lanes) + 1;
  for (std::uint32_t lane = 0; lane < lane_count; ++lane) {
    WriteName(out, "thread_name", kRequestsProcess, std::uint64_t{lane} + 1,
              fmt::format("lane {}", lane + 1));
  }
  for (std::size_t i = 0; i < outcome.records.size(); ++i) {
    if (outcome.records[i].terminal) {
      WriteRequest(out, outcome, i, lanes[i], session_names);
    }
  }
  for (const sim::PassRecord& pass : outcome.passes) {
    WritePass(out, pass, processes.at({pass.pool, pass.worker}));
  }
  WriteCounters(out, outcome, processes);
  out.EndArray();
  out.EndObject();
  out.EndLine();
}

Result<void> WriteChromeTraceFile(const std::string& path, const sim::Outcome& outcome,
                                  const SessionNames& session_names) {
  DYNO_TRY(AtomicFile file, AtomicFile::Create(path));
  JsonWriter out({}, [&file](std::string_view text) { file.Append(text); });
  WriteChromeTrace(out, outcome, session_names);
  out.Flush();
  return file.Commit();
}

}  // namespace dynosim::report
