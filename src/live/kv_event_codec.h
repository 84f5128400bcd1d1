// SPDX-License-Identifier: Apache-2.0
// The bytes of KV events and forward-pass metrics as vLLM's subscribers read them (chapter 95,
// sections 9 and 10), in MessagePack.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/effects.h"
#include "engine/kv_event_buffer.h"
#include "live/live_request.h"

namespace dynosim::live {

struct KvEventForm {
  std::uint64_t block_size = 64;
  bool positional = false;  // arrays [tag, fields...] of older vLLM releases instead of maps
};

// One batch with all events that a rank made visible. Events of requests that `table` does not know
// any more are told without token ids.
std::string EncodeKvEvents(const engine::KvEventBuffer& events, std::uint32_t rank,
                           double unix_time_s, const RequestTable& table, const KvEventForm& form);

// What a batch says of a cache, in order; both forms of events are understood. Empty for bytes that
// are no batch.
struct KvUpdate {
  bool stored = true;
  std::vector<std::uint64_t> blocks;
};
std::vector<KvUpdate> DecodeKvEvents(std::string_view payload);

// `metrics` may be all zeros (a heartbeat).
std::string EncodePassMetrics(const engine::ForwardPassMetrics& metrics, std::string_view worker_id,
                              std::uint32_t rank, std::uint64_t counter, double wall_time_s);

}  // namespace dynosim::live
