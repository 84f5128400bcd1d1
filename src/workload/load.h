// SPDX-License-Identifier: Apache-2.0
// Builds the RequestSource of a WorkloadSpec. Errors name the flag, or file, line and field.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "workload/source.h"
#include "workload/spec.h"

namespace dynosim::workload {

struct LoadedWorkload {
  std::unique_ptr<RequestSource> source;
  std::vector<std::string> warnings;  // for stderr; never change results
};

// `engine_block_size` is the block size (SGLang: page size) of the engine that sees a prompt first;
// a prefix that synthetic prompts share is a whole number of such blocks.
Result<LoadedWorkload> LoadWorkload(const WorkloadSpec& spec, std::uint64_t engine_block_size);

}  // namespace dynosim::workload
