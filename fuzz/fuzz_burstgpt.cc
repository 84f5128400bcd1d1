// SPDX-License-Identifier: Apache-2.0
// Any bytes as a BurstGPT trace.
#include <cstddef>
#include <cstdint>

#include "trace_format.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  dynosim::FuzzTrace(data, size, {.format = "burstgpt"});
  return 0;
}
