// SPDX-License-Identifier: Apache-2.0
// Any bytes as a list of lengths, timed and with a concurrency.
#include <cstddef>
#include <cstdint>

#include "trace_format.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  dynosim::FuzzTrace(data, size, {.format = "lengths"});
  dynosim::FuzzTrace(data, size, {.format = "lengths", .concurrency = 3});
  return 0;
}
