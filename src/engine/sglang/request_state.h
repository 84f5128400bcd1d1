// SPDX-License-Identifier: Apache-2.0
// One request inside the SGLang-shaped core. `length` counts prompt and generated tokens,
// `materialized` the leading ones that have KV, `cached_pages` the leading pages that are in the
// tree (the request holds a lock on `node`, the node of the last of them).
//
// While the rank's calendar is on, a running request gains one token in every decode pass and its
// counters stand still: after decode pass d its length is d + base. A `live` request is the only
// holder of its leaf, which grows by its generated pages; the tree asks for them when it needs
// them.
#pragma once

#include <cstdint>

#include "engine/effects.h"
#include "kv/radix_cache.h"
#include "kv/sequence_blocks.h"
#include "workload/source.h"

namespace dynosim::engine::sglang {

enum class State : std::uint8_t { kWaiting, kRunning, kPrebuilt, kHeld, kPending, kReserved };

struct RequestState {
  std::uint32_t id = 0;
  State state = State::kWaiting;
  bool generated_shared = false;                    // its generated pages may equal those of others
  const workload::RequestSource* unread = nullptr;  // where its names are, until they are needed
  std::uint64_t prompt = 0;
  std::uint64_t output = 0;  // effective output limit
  std::uint64_t length = 0;
  std::uint64_t materialized = 0;
  std::uint64_t pages = 0;  // owned or borrowed
  std::uint64_t cached_pages = 0;
  std::uint64_t announced_pages = 0;  // leading pages that were reported as stored
  kv::RadixCache::NodeId node = kv::RadixCache::kRoot;
  kv::SequenceBlocks names;
  std::uint64_t order = 0;  // position in the running list as a growing number

  // Calendar only.
  bool live = false;
  std::int64_t base = 0;
  std::uint64_t since = 0;          // decode pass up to which the track is complete
  std::uint64_t segment = 0;        // stretch of decode passes that was current then
  std::uint64_t stamped_pages = 0;  // pages whose completion has been stamped in the tree

  TokenTrack track;

  std::uint64_t generated() const { return length - prompt; }
  std::uint64_t remaining() const { return output > generated() ? output - generated() : 0; }
  std::uint64_t final_length() const { return prompt + output; }
};

}  // namespace dynosim::engine::sglang
