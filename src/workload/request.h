// SPDX-License-Identifier: Apache-2.0
// A request as plain data, and the identity of its KV blocks.
//
// Two KV blocks are equal when their whole token prefix is equal. Instead of hashing tokens, the
// workload interns every distinct block prefix to a small name (group, offset); an engine compares
// names only. Names are unique within one workload and one engine block size.
#pragma once

#include <cstdint>
#include <limits>

namespace dynosim::workload {

inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// A run of consecutive blocks of one sequence: names (group, first), (group, first + 1), ...
struct BlockExtent {
  std::uint32_t group = 0;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  friend bool operator==(const BlockExtent&, const BlockExtent&) = default;
};
// Count of an extent that never ends: generated blocks that no other sequence can share.
inline constexpr std::uint32_t kEndless = std::numeric_limits<std::uint32_t>::max();

// One request at the moment it is released to the router.
struct Request {
  std::uint32_t id = 0;             // ordinal in authored order, dense from 0
  double arrival_ms = 0.0;          // time it became ready (concurrency mode: release time)
  std::uint64_t prompt_tokens = 0;  // >= 1
  std::uint64_t output_tokens = 0;  // requested; 0 means prefill only
  std::uint32_t session = kNone;    // index for RequestSource::SessionName, kNone for request lists
  std::uint32_t turn = kNone;       // 0-based turn, kNone for request lists and agentic nodes
  std::int32_t priority = 0;
  std::uint32_t strict_priority = 0;
  std::uint32_t policy_class = kNone;  // index for RequestSource::PolicyClassName
};

// How a request left the system.
enum class TerminalStatus : std::uint8_t { kCompleted, kRejected, kCanceled, kFailed };

}  // namespace dynosim::workload
