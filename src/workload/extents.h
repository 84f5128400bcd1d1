// SPDX-License-Identifier: Apache-2.0
// Names of the blocks of a sequence that is kept as a chain of runs: a block is named by the run
// that holds its last token, and by its position among the blocks that end in that run.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "workload/request.h"

namespace dynosim::workload {

// Appends the names of all complete blocks of the `tokens` tokens that end in run `node`, in order.
// Groups are numbers of runs. `nodes[i]` has `start` (tokens before it) and `parent`.
template <class Nodes>
void AppendExtents(const Nodes& nodes, std::uint32_t node, std::uint64_t tokens,
                   std::uint64_t block_size, std::vector<BlockExtent>& out) {
  // No pool holds so many blocks; longer counts are cut here.
  constexpr std::uint64_t kMaxBlocks = std::numeric_limits<std::uint32_t>::max() - 1;
  // From the last run back to the first: block i ends in a run if the run covers its last token.
  const auto walk = [&](auto blocks_in) {
    std::uint64_t end = blocks_in(tokens);
    for (; node != kNone; node = nodes[node].parent) {
      const std::uint64_t begin = blocks_in(nodes[node].start);
      if (end > begin) {
        const std::uint64_t count = std::min(end - begin, kMaxBlocks);
        out.push_back({node, 0, static_cast<std::uint32_t>(count)});
      }
      end = begin;
    }
  };
  const auto first = static_cast<std::ptrdiff_t>(out.size());
  if (std::has_single_bit(block_size)) {
    const int shift = std::countr_zero(block_size);
    walk([shift](std::uint64_t before) { return before >> shift; });
  } else {
    walk([block_size](std::uint64_t before) { return before / block_size; });
  }
  std::reverse(out.begin() + first, out.end());
}

}  // namespace dynosim::workload
