// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/registry.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/result.h"
#include "workload/load.h"
#include "workload/spec.h"
#include "workload/traces/mooncake.h"

namespace dynosim::workload {
namespace {

using TraceReader = Result<LoadedWorkload> (*)(const WorkloadSpec& workload, const TraceSpec& spec,
                                               std::uint64_t engine_block_size);

struct TraceFormat {
  std::string_view name;
  std::string_view alias;
  TraceReader read = nullptr;  // nullptr: known, but not in this version
  bool many_files = false;
};

constexpr std::array kFormats = {
    TraceFormat{"mooncake", "", &ReadMooncake},
    TraceFormat{"mooncake-delta", "mooncake_delta", &ReadMooncakeDelta},
    TraceFormat{"agentic_mooncake", "agentic-mooncake"},
    TraceFormat{"weka", ""},
    TraceFormat{"applied_compute_agentic", ""},
    TraceFormat{"dynamo", "", nullptr, true},
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

}  // namespace

Result<LoadedWorkload> ReadTrace(const WorkloadSpec& workload, const TraceSpec& spec,
                                 std::uint64_t engine_block_size) {
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
  if (format->read == nullptr) {
    return UsageError("--trace-format",
                      fmt::format("'{}' is not available in this version", spec.format));
  }
  return format->read(workload, spec, engine_block_size);
}

}  // namespace dynosim::workload
