// SPDX-License-Identifier: Apache-2.0
// The first layers of DeepSeek-V3.2 and GLM-5, which are dense; only SGLang's lists tell them
// apart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "timing/op_level/graph.h"

namespace dynosim::timing {

// Neighbours and others with the same modes, in the order of first appearance.
struct DensePrefixGroup {
  std::string gate_up_mode;
  std::string down_mode;
  std::uint64_t layers = 0;
};

// Empty when all layers count as expert layers.
Result<std::vector<DensePrefixGroup>> FindDensePrefix(const GraphInput& input);

}  // namespace dynosim::timing
