// SPDX-License-Identifier: Apache-2.0
// Any bytes as an agentic Mooncake file, without lanes and on two.
#include <cstddef>
#include <cstdint>

#include "trace_format.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  dynosim::FuzzTrace(data, size, {.format = "agentic_mooncake"});
  dynosim::FuzzTrace(data, size, {.format = "agentic_mooncake", .lanes = 2});
  return 0;
}
