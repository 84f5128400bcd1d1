// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/contents.h"

#include <cstdint>

#include <fmt/format.h>

#include "base/result.h"
#include "workload/spec.h"

namespace dynosim::workload {

Result<std::uint64_t> TraceBlockSize(const TraceSpec& spec) {
  constexpr std::int64_t kDefaultBlockSize = 512;
  const std::int64_t block_size = spec.block_size.value_or(kDefaultBlockSize);
  if (block_size < 1) {
    return UsageError("--trace-block-size",
                      fmt::format("must be greater than 0, got {}", block_size));
  }
  return static_cast<std::uint64_t>(block_size);
}

}  // namespace dynosim::workload
