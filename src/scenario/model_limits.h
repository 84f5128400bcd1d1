// SPDX-License-Identifier: Apache-2.0
// Facts of a model that the simulator needs beside its timing.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace dynosim::scenario {

// The longest sequence in tokens that a model is made for: max_position_embeddings of config.json
// in the directory `model`.
Result<std::uint64_t> MaxContextLength(const std::string& model);

}  // namespace dynosim::scenario
