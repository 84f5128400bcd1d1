// SPDX-License-Identifier: Apache-2.0
// One request inside the vLLM-shaped core. Token counts are absolute: `length` counts prompt and
// generated tokens, `computed` those whose KV exists.
//
// A steady request gains exactly one token in every pass. Its counters stand still; `base` gives
// them: after the scheduling of pass p, computed = p + base, and the pass adds the token at that
// position.
#pragma once

#include <cstdint>

#include "engine/effects.h"
#include "kv/block_pool.h"
#include "kv/sequence_blocks.h"

namespace dynosim::engine::vllm {

enum class Status : std::uint8_t {
  kWaiting,  // never admitted
  kRunning,
  kPreempted,  // in the waiting list again
  kHeld,       // handoff source: prompt done, KV kept
  kPending,    // handoff destination: reservation queued
  kReserved,   // handoff destination: blocks reserved
  kActivated,  // handoff destination: KV arrived, in the waiting list
};

struct RequestState {
  std::uint32_t id = 0;
  Status status = Status::kWaiting;
  bool steady = false;
  std::uint64_t prompt = 0;
  std::uint64_t output = 0;        // effective output limit
  std::uint64_t final_length = 0;  // complete when length reaches it
  std::uint64_t length = 0;
  std::uint64_t computed = 0;
  std::uint64_t allocated = 0;      // tokens with a block behind them, high-water mark
  std::uint64_t hashed_blocks = 0;  // leading blocks that have a name
  std::int64_t base = 0;            // steady only
  kv::BlockTable table;
  kv::SequenceBlocks names;

  std::uint64_t accepted = 0;  // handoff destination: ordinal of its reservation

  // Links: running list, due list of steady requests.
  std::uint32_t prev = kNoSlot, next = kNoSlot;
  std::uint32_t due_prev = kNoSlot, due_next = kNoSlot;
  std::uint64_t order = 0;  // position in the running list as a growing number

  // What the current pass scheduled for it.
  std::uint64_t scheduled_pass = 0;  // 0: never
  std::uint64_t scheduled_total = 0;
  std::uint64_t scheduled_prompt = 0;
  std::uint64_t scheduled_prefix = 0;

  TokenTrack track;

  std::uint64_t generated() const { return length - prompt; }
  bool complete() const { return length >= final_length; }
};

}  // namespace dynosim::engine::vllm
