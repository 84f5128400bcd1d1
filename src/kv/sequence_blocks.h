// SPDX-License-Identifier: Apache-2.0
// Names of the blocks of one sequence (prompt, then generated tokens), stored as runs, with a
// cursor that makes forward access O(1). Owned by the request that the engine holds.
#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "kv/events.h"
#include "workload/request.h"

namespace dynosim::kv {

class SequenceBlocks {
 public:
  // Buffer to fill; call Rewind() after a change.
  std::vector<workload::BlockExtent>& extents() { return extents_; }
  const std::vector<workload::BlockExtent>& extents() const { return extents_; }
  // Appends the groups of all names of the sequence.
  void AppendGroups(std::vector<std::uint32_t>& groups) const {
    for (const workload::BlockExtent& extent : extents_) {
      groups.push_back(extent.group);
    }
  }
  void Rewind() {
    cursor_ = 0;
    cursor_block_ = 0;
  }

  // The run of consecutive names that starts at block `block`: its first name and how many follow
  // (at least 1). Moves the cursor; going back costs a walk from the start.
  struct Run {
    std::uint32_t group;
    std::uint32_t offset;
    std::uint32_t count;
  };
  Run At(std::uint32_t block) {
    if (block < cursor_block_) {
      Rewind();
    }
    while (block - cursor_block_ >= extents_[cursor_].count) {
      cursor_block_ += extents_[cursor_].count;
      ++cursor_;
      DYNO_DCHECK(cursor_ < extents_.size());
    }
    const workload::BlockExtent& e = extents_[cursor_];
    const std::uint32_t skip = block - cursor_block_;
    return {.group = e.group, .offset = e.first + skip, .count = e.count - skip};
  }

 private:
  std::vector<workload::BlockExtent> extents_;
  std::uint32_t cursor_ = 0;        // extent that holds the last block asked for
  std::uint32_t cursor_block_ = 0;  // first block of that extent
};

}  // namespace dynosim::kv
