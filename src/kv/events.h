// SPDX-License-Identifier: Apache-2.0
// KV events of one rank as values. Blocks are named as the workload names them
// (workload/request.h); a consumer that needs hashes derives them from the tokens of `request`.
#pragma once

#include <cstdint>
#include <vector>

namespace dynosim::kv {

// (group << 32) | offset of a block name.
using BlockName = std::uint64_t;

struct KvEvent {
  enum class Kind : std::uint8_t { kStored, kRemoved, kCleared };
  Kind kind = Kind::kStored;
  std::uint32_t dp_rank = 0;
  std::uint64_t event_id = 0;  // counts up per rank from 0
  // kStored: blocks [first_block, first_block + blocks.size()) of the sequence of `request` became
  // visible; the parent is block first_block - 1 of the same sequence (none for block 0).
  std::uint32_t request = 0;
  std::uint32_t first_block = 0;
  std::vector<BlockName>
      blocks;  // kStored: new blocks in sequence order; kRemoved: in eviction order
};

}  // namespace dynosim::kv
