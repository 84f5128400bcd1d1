// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/registry.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "workload/agentic_graph.h"
#include "workload/agentic_source.h"
#include "workload/blank.h"
#include "workload/limits.h"
#include "workload/load.h"
#include "workload/source.h"
#include "workload/spec.h"
#include "workload/trace_source.h"
#include "workload/trace_table.h"
#include "workload/traces/agentic_mooncake.h"
#include "workload/traces/applied_compute.h"
#include "workload/traces/azure.h"
#include "workload/traces/bailian.h"
#include "workload/traces/burstgpt.h"
#include "workload/traces/contents.h"
#include "workload/traces/dynamo.h"
#include "workload/traces/lengths.h"
#include "workload/traces/mooncake.h"
#include "workload/traces/mooncake_stream.h"
#include "workload/traces/weka.h"

namespace dynosim::workload {
namespace {

using TraceReader = Result<TraceContents> (*)(const WorkloadSpec& workload, const TraceSpec& spec);

// Null when the trace has to be read whole.
using TraceStreamer = std::unique_ptr<RequestSource> (*)(const WorkloadSpec& workload,
                                                         const TraceSpec& spec,
                                                         TraceOddities& oddities);

// Whether a trace is a graph of dependent requests.
enum class Agentic : std::uint8_t { kNever, kAlways, kSometimes };

struct TraceFormat {
  std::string_view name;
  std::string_view alias;
  TraceReader read = nullptr;
  Agentic agentic = Agentic::kNever;
  bool many_files = false;
  TraceStreamer stream = nullptr;  // null: always read whole
};

constexpr std::array kFormats = {
    TraceFormat{"mooncake", "", &ReadMooncake, Agentic::kNever, false, &StreamMooncake},
    TraceFormat{"mooncake-delta", "mooncake_delta", &ReadMooncakeDelta},
    TraceFormat{"agentic_mooncake", "agentic-mooncake", &ReadAgenticMooncake, Agentic::kAlways},
    TraceFormat{"weka", "", &ReadWeka, Agentic::kAlways},
    TraceFormat{"applied_compute_agentic", "", &ReadAppliedCompute},
    TraceFormat{"dynamo", "", &ReadDynamo, Agentic::kSometimes, true},
    TraceFormat{"azure", "", &ReadAzure},
    TraceFormat{"burstgpt", "", &ReadBurstGpt},
    TraceFormat{"bailian", "", &ReadBailian},
    TraceFormat{"lengths", "", &ReadLengths},
};

const TraceFormat* FindFormat(std::string_view name) {
  for (const TraceFormat& format : kFormats) {
    if (name == format.name || (!format.alias.empty() && name == format.alias)) {
      return &format;
    }
  }
  return nullptr;
}

std::string FormatNames() {
  std::string names;
  for (const TraceFormat& format : kFormats) {
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", format.name);
  }
  return names;
}

Result<const TraceFormat*> CheckFormat(const TraceSpec& spec) {
  const TraceFormat* const format = FindFormat(spec.format);
  if (format == nullptr) {
    return UsageError("--trace-format",
                      fmt::format("must be one of {}, got '{}'", FormatNames(), spec.format));
  }
  if (spec.files.empty()) {
    return UsageError("", "a trace replay needs at least one trace file");
  }
  if (spec.files.size() > 1 && !format->many_files) {
    return UsageError("", fmt::format("--trace-format '{}' takes exactly one trace file, got {}",
                                      spec.format, spec.files.size()));
  }
  return format;
}

Result<void> RequireModel(const TraceSpec& spec) {
  if (!spec.execution_model) {
    return UsageError("--execution-model",
                      "is needed for agentic traces: the name of the model that the requests of "
                      "all recorded models run on");
  }
  return {};
}

// Rules of agentic runs that need no look into the file.
Result<void> CheckAgenticOptions(const WorkloadSpec& workload, const TraceSpec& spec,
                                 Agentic agentic) {
  if (spec.execution_model && IsBlank(*spec.execution_model)) {
    return UsageError("--execution-model", "execution_model must not be empty");
  }
  if (spec.weka_nested_timestamp_basis) {
    const std::string& basis = *spec.weka_nested_timestamp_basis;
    if (spec.format != "weka") {
      return UsageError("--weka-nested-timestamp-basis",
                        "weka_nested_timestamp_basis needs --trace-format weka");
    }
    if (basis != "auto" && basis != "absolute" && basis != "relative") {
      return UsageError("--weka-nested-timestamp-basis",
                        fmt::format("must be auto, absolute or relative, got '{}'", basis));
    }
  }
  if (spec.agentic_lanes) {
    if (*spec.agentic_lanes < 1) {
      return UsageError("--agentic-lanes", fmt::format("agentic_lanes must be at least 1, got {}",
                                                       *spec.agentic_lanes));
    }
    if (agentic == Agentic::kNever) {
      return UsageError("--agentic-lanes",
                        "agentic_lanes needs the trace format 'agentic_mooncake', 'weka' or "
                        "'dynamo'");
    }
    if (workload.replay_concurrency) {
      return UsageError("--agentic-lanes",
                        "agentic_lanes cannot be combined with replay_concurrency");
    }
  }
  if (agentic != Agentic::kAlways) {
    return {};
  }
  DYNO_TRY_VOID(RequireModel(spec));
  if (workload.replay_concurrency) {
    return UsageError("--replay-concurrency",
                      fmt::format("replay_concurrency is not possible with the agentic trace "
                                  "format '{}'; --agentic-lanes limits its plays",
                                  spec.format));
  }
  return {};
}

std::optional<std::uint64_t> Unsigned(const std::optional<std::int64_t>& value) {
  return value ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
}

Result<LoadedWorkload> Load(const WorkloadSpec& workload, const TraceSpec& spec,
                            TraceContents contents) {
  LoadedWorkload loaded;
  if (contents.graph) {
    DYNO_TRY_VOID(RequireModel(spec));
    if (workload.replay_concurrency) {
      return UsageError("--replay-concurrency",
                        "agentic traces are not supported with replay_concurrency");
    }
    NormalizeTimes(*contents.graph, workload.arrival_speedup_ratio);
    loaded.source =
        std::make_unique<AgenticSource>(*std::move(contents.graph), Unsigned(spec.agentic_lanes));
    return loaded;
  }
  if (spec.agentic_lanes) {
    return UsageError("--agentic-lanes", "agentic_lanes needs a trace with agent contexts");
  }
  DYNO_TRY_VOID(FinishTrace(contents.path, workload, *contents.table, contents.oddities));
  loaded.warnings = OddityWarnings(contents.path, contents.oddities);
  loaded.source = std::make_unique<TraceSource>(*std::move(contents.table),
                                                Unsigned(workload.replay_concurrency));
  return loaded;
}

}  // namespace

Result<TraceContents> ReadTraceContents(const WorkloadSpec& workload, const TraceSpec& spec) {
  DYNO_TRY(const TraceFormat* const format, CheckFormat(spec));
  return format->read(workload, spec);
}

Result<LoadedWorkload> ReadTrace(const WorkloadSpec& workload, const TraceSpec& spec) {
  DYNO_TRY(const TraceFormat* const format, CheckFormat(spec));
  DYNO_TRY_VOID(CheckAgenticOptions(workload, spec, format->agentic));
  DYNO_TRY_VOID(CheckConcurrency(workload));
  DYNO_TRY_VOID(CheckSpeedup(workload));
  if (format->stream != nullptr) {
    LoadedWorkload loaded;
    TraceOddities oddities;
    loaded.source = format->stream(workload, spec, oddities);
    if (loaded.source != nullptr) {
      loaded.warnings = OddityWarnings(spec.files.front(), oddities);
      return loaded;
    }
  }
  DYNO_TRY(TraceContents contents, format->read(workload, spec));
  return Load(workload, spec, std::move(contents));
}

std::vector<std::string_view> TraceFormatNames() {
  std::vector<std::string_view> names;
  for (const TraceFormat& format : kFormats) {
    names.push_back(format.name);
  }
  return names;
}

}  // namespace dynosim::workload
