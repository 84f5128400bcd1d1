// SPDX-License-Identifier: Apache-2.0
// Any bytes as a weka corpus of any number of objects.
#include <cstddef>
#include <cstdint>

#include "trace_format.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  dynosim::FuzzTrace(data, size, {.format = "weka", .file_ending = ".jsonl"});
  return 0;
}
