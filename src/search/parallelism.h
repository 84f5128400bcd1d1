// SPDX-License-Identifier: Apache-2.0
// The mapping `parallelism` of a worker in the document of `recommend`: a preset of shapes, or six
// fields of their own (chapter 60, C.1).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "search/shapes.h"

namespace dynosim::search {

struct ParallelismDomain {
  enum class Kind : std::uint8_t {
    kGenerated,  // preset: default, or nothing at all
    kListed,     // preset: a list of shapes
    kFields      // the six fields, each with a value or a domain of its own
  };
  Kind kind = Kind::kGenerated;
  std::vector<Shape> listed;
};

// `value` may be nullptr. `path` is that of the mapping.
Result<ParallelismDomain> ReadParallelism(const Json* value, const std::string& path,
                                          std::uint64_t max_gpus, const std::string& where);

}  // namespace dynosim::search
