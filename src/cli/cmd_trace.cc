// SPDX-License-Identifier: Apache-2.0
#include "cli/cmd_trace.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/result.h"
#include "cli/program.h"
#include "workload/load.h"
#include "workload/spec.h"
#include "workload/time_unit.h"
#include "workload/trace_facts.h"
#include "workload/trace_writer.h"
#include "workload/traces/contents.h"
#include "workload/traces/detect.h"
#include "workload/traces/registry.h"

namespace dynosim::cli {
namespace {

using workload::TimeUnit;
using workload::TraceContents;
using workload::TraceFacts;

// A trace that was read, with what can be said about its times.
struct Trace {
  workload::WorkloadSpec workload;
  TraceContents contents;
  const TimeUnit* guess = nullptr;  // null: the trace has no times in doubt
};

bool HasTimes(const workload::TraceTable& table) {
  return std::any_of(
      table.sessions.begin(), table.sessions.end(),
      [](const workload::TraceSession& session) { return !std::isnan(session.first_ms); });
}

// Formats whose times are in a unit of their own.
bool FixedUnit(const std::string& format) {
  return format == "azure" || format == "burstgpt" || format == "bailian" || format == "lengths" ||
         format == "dynamo";
}

Result<Trace> ReadTrace(const TraceOptions& options) {
  Trace trace;
  workload::TraceSpec& spec = trace.workload.trace.emplace();
  spec.files = options.files;
  spec.block_size = options.block_size;
  spec.execution_model = "any";
  if (options.format.empty()) {
    DYNO_TRY(spec.format, workload::DetectFormat(options.files.front()));
  } else {
    spec.format = options.format;
  }
  if (spec.format == "applied_compute_agentic") {
    trace.workload.replay_concurrency = std::numeric_limits<std::int32_t>::max();
  }
  DYNO_TRY(trace.contents, workload::ReadTraceContents(trace.workload, spec));
  if (trace.contents.table && !HasTimes(*trace.contents.table)) {
    trace.workload.replay_concurrency = std::numeric_limits<std::int32_t>::max();
  } else if (trace.contents.table && !FixedUnit(spec.format)) {
    trace.guess = &workload::GuessTimeUnit(*trace.contents.table);
  }
  return trace;
}

Json LengthsJson(const workload::LengthFacts& facts) {
  Json json;
  json.Add("total", facts.total);
  json.Add("mean", facts.mean);
  json.Add("min", facts.min);
  json.Add("median", facts.median);
  json.Add("p99", facts.p99);
  json.Add("max", facts.max);
  return json;
}

Json FactsJson(const Trace& trace, const TraceFacts& facts) {
  Json json;
  json.Add("format", trace.workload.trace->format);
  json.Add("block_size", workload::WrittenBlockSize(trace.contents));
  json.Add("requests", facts.requests);
  json.Add(trace.contents.graph ? "plays" : "sessions", facts.groups);
  json.Add("input_tokens", LengthsJson(facts.input));
  json.Add("output_tokens", LengthsJson(facts.output));
  json.Add("last_arrival_ms", facts.last_arrival_ms);
  Json::Array arrivals;
  for (const std::uint64_t count : facts.arrivals) {
    arrivals.emplace_back(count);
  }
  json.Add("arrivals_by_tenth", std::move(arrivals));
  json.Add("distinct_prompt_blocks", facts.distinct_blocks);
  json.Add("reusable_prompt_tokens", facts.reusable_tokens);
  const double total = static_cast<double>(std::max<std::uint64_t>(facts.input.total, 1));
  json.Add("reusable_prompt_ratio", static_cast<double>(facts.reusable_tokens) / total);
  return json;
}

// Names and values in two columns; objects and lists on one line each.
std::string PlainText(const Json& json) {
  std::string text;
  for (const Json::Member& member : json.object()) {
    std::string value =
        member.second.is_string() ? member.second.string() : DumpJson(member.second);
    if (member.second.is_array() && !member.second.array().empty() &&
        member.second.array().front().is_string()) {
      value.clear();
      for (const Json& line : member.second.array()) {
        value += "\n  " + line.string();
      }
    }
    text += fmt::format("{:<24}{}\n", member.first, value);
  }
  return text;
}

Result<void> PrintJson(const TraceOptions& options, const Json& json) {
  return Print(options.json ? DumpJson(json, {.indent = 2}) + "\n" : PlainText(json));
}

struct Loaded {
  TraceFacts facts;
  std::vector<std::string> warnings;
};

// Reads the trace as a replay would, and goes through it.
Result<Loaded> FindFacts(const Trace& trace) {
  const std::uint64_t block_size = workload::WrittenBlockSize(trace.contents);
  DYNO_TRY(const workload::LoadedWorkload loaded,
           workload::LoadWorkload(trace.workload, block_size));
  Loaded out{.facts = workload::FindTraceFacts(*loaded.source, block_size),
             .warnings = loaded.warnings};
  out.facts.groups = trace.contents.graph ? trace.contents.graph->plays.size()
                                          : trace.contents.table->sessions.size();
  return out;
}

Result<void> Stats(const TraceOptions& options) {
  DYNO_TRY(const Trace trace, ReadTrace(options));
  DYNO_TRY(const Loaded loaded, FindFacts(trace));
  return PrintJson(options, FactsJson(trace, loaded.facts));
}

Result<void> Check(const TraceOptions& options) {
  DYNO_TRY(const Trace trace, ReadTrace(options));
  DYNO_TRY(const Loaded loaded, FindFacts(trace));
  Json json;
  json.Add("format", trace.workload.trace->format);
  json.Add("requests", loaded.facts.requests);
  json.Add(trace.contents.graph ? "plays" : "sessions", loaded.facts.groups);
  json.Add("input_tokens", loaded.facts.input.total);
  json.Add("output_tokens", loaded.facts.output.total);
  const double total = static_cast<double>(std::max<std::uint64_t>(loaded.facts.input.total, 1));
  json.Add("reusable_prompt_ratio", static_cast<double>(loaded.facts.reusable_tokens) / total);
  Json::Array warnings;
  if (trace.guess != nullptr) {
    json.Add("time_unit", trace.guess->long_name);
    if (trace.guess->ms != 1.0) {
      warnings.emplace_back(fmt::format(
          "{}: timestamps look like {}, but the format has milliseconds; trace convert --fix",
          trace.contents.path, trace.guess->long_name));
    }
  }
  for (const std::string& warning : loaded.warnings) {
    warnings.emplace_back(warning);
  }
  json.Add("verdict", warnings.empty() ? "can be replayed" : "can be replayed, with warnings");
  json.Add("warnings", std::move(warnings));
  return PrintJson(options, json);
}

Result<double> TimeFactor(const TraceOptions& options, const Trace& trace) {
  if (!options.time_unit.empty()) {
    const TimeUnit* const unit = workload::FindTimeUnit(options.time_unit);
    if (unit == nullptr) {
      return UsageError("--time-unit", "must be s, ms, us or ns, got '" + options.time_unit + "'");
    }
    return unit->ms;
  }
  return options.fix && trace.guess != nullptr ? trace.guess->ms : 1.0;
}

Result<void> Convert(const TraceOptions& options) {
  DYNO_TRY(const Trace trace, ReadTrace(options));
  DYNO_TRY(const double factor, TimeFactor(options, trace));
  const workload::WriteOptions write{.by_time = options.fix, .time_factor = factor};
  if (options.output.empty()) {
    Result<void> printed;
    workload::WriteTrace(trace.contents, write, [&printed](std::string_view line) {
      if (printed) {
        printed = Print(line);
      }
    });
    return printed;
  }
  DYNO_TRY(AtomicFile file, AtomicFile::Create(options.output));
  workload::WriteTrace(trace.contents, write,
                       [&file](std::string_view line) { file.Append(line); });
  DYNO_TRY_VOID(file.Commit());
  return Print(fmt::format("Wrote {}: --trace-format {} --trace-block-size {}\n", options.output,
                           workload::WrittenFormat(trace.contents),
                           workload::WrittenBlockSize(trace.contents)));
}

CLI::App* AddAction(CLI::App& trace, TraceOptions& options, const char* name, const char* help) {
  CLI::App* const action = trace.add_subcommand(name, help);
  action->add_option("files", options.files, "Trace file (several for the format dynamo)")
      ->type_name("FILE")
      ->required();
  action->add_option("--format", options.format, "Format of the trace (default: guessed)")
      ->type_name("NAME");
  action
      ->add_option("--trace-block-size", options.block_size,
                   "Tokens that one hash id stands for (default as in replay)")
      ->type_name("TOKENS");
  action->callback([&options, name] { options.action = name; });
  return action;
}

}  // namespace

void AddTraceCommand(CLI::App& app, TraceOptions& options) {
  CLI::App* const trace = app.add_subcommand("trace", "Checks, describes and converts trace files");
  trace->require_subcommand(1);
  CLI::App* const check = AddAction(*trace, options, "check",
                                    "Tells whether a trace can be replayed, and its oddities");
  CLI::App* const stats =
      AddAction(*trace, options, "stats", "Lengths, arrivals and shared prompts of a trace");
  CLI::App* const convert =
      AddAction(*trace, options, "convert", "Writes a trace as Mooncake lines");
  for (CLI::App* const action : {check, stats}) {
    action->add_flag("--json", options.json, "Prints JSON");
  }
  convert->add_option("--output", options.output, "File to write (default: standard output)")
      ->type_name("PATH");
  convert->add_flag("--fix", options.fix, "Orders sessions by time, from 0, in milliseconds");
  convert->add_option("--time-unit", options.time_unit, "Unit of the times: s, ms, us or ns")
      ->type_name("UNIT");
}

int RunTrace(const TraceOptions& options) {
  const Result<void> done = options.action == "check"   ? Check(options)
                            : options.action == "stats" ? Stats(options)
                                                        : Convert(options);
  return done ? kExitOk : ReportError(done.error());
}

}  // namespace dynosim::cli
