// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of Applied Compute sessions.
#include <cstddef>
#include <cstdint>

#include "trace_format.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  dynosim::FuzzTrace(data, size, {.format = "applied_compute_agentic", .concurrency = 2});
  return 0;
}
