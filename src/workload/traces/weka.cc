// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/weka.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "workload/agentic_builder.h"
#include "workload/spec.h"
#include "workload/traces/contents.h"
#include "workload/traces/weka_objects.h"
#include "workload/traces/weka_plays.h"
#include "workload/traces/weka_streams.h"

namespace dynosim::workload {
namespace {

Result<std::uint64_t> CheckBlockSize(const TraceSpec& spec,
                                     const std::vector<WekaObject>& objects) {
  const std::uint64_t block_size = objects.front().block_size;
  for (const WekaObject& object : objects) {
    if (object.block_size != block_size) {
      return FailedError(object.where, fmt::format("the corpus mixes block sizes: block_size {} "
                                                   "differs from {} of the first object",
                                                   object.block_size, block_size));
    }
  }
  if (spec.block_size &&
      (*spec.block_size < 1 || static_cast<std::uint64_t>(*spec.block_size) != block_size)) {
    return UsageError("--trace-block-size", fmt::format("is {}, but the block_size of the corpus "
                                                        "is {}",
                                                        *spec.block_size, block_size));
  }
  return block_size;
}

// What the times of nested requests count from: the whole corpus has one answer.
std::string FindBasis(const TraceSpec& spec, const std::vector<WekaObject>& objects) {
  std::string asked = spec.weka_nested_timestamp_basis.value_or("auto");
  if (asked != "auto") {
    return asked;
  }
  bool any = false;
  for (const WekaObject& object : objects) {
    for (const WekaEntry& entry : object.entries) {
      if (!entry.subagent) {
        continue;
      }
      for (const WekaRequest& request : entry.subagent->requests) {
        any = true;
        if (request.t < entry.subagent->t - kWekaTolerance) {
          return "relative";
        }
      }
    }
  }
  return any ? "absolute" : "not_applicable";
}

}  // namespace

Result<TraceContents> ReadWeka(const WorkloadSpec& /*workload*/, const TraceSpec& spec) {
  const std::string& path = spec.files.front();
  DYNO_TRY(std::vector<WekaObject> objects, ReadWekaObjects(path));
  DYNO_TRY(const std::uint64_t block_size, CheckBlockSize(spec, objects));
  const std::string basis = FindBasis(spec, objects);
  AgenticBuilder builder(block_size);
  WekaBlockIds block_ids;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    DYNO_TRY(std::vector<AgenticRequest> requests,
             MakeWekaPlay(objects[i], i, basis == "relative", block_ids));
    for (AgenticRequest& request : requests) {
      DYNO_TRY_VOID(builder.Add(std::move(request)));
    }
    objects[i] = WekaObject();  // its hashes are a large part of the memory
  }
  TraceContents contents{.path = path};
  DYNO_TRY(contents.graph, builder.Finish(path));
  contents.graph->source_format = "weka";
  contents.graph->nested_timestamp_basis = basis;
  return contents;
}

}  // namespace dynosim::workload
