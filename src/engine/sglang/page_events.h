// SPDX-License-Identifier: Apache-2.0
// PageEvents: which pages were reported as stored, and the KV events that follow (chapter 20,
// section 13). Several physical pages may carry the same name, so names are counted: the first one
// stores it, the last one removes it. Does nothing without a sink.
#pragma once

#include <cstdint>
#include <vector>

#include "base/flat_map.h"
#include "engine/kv_event_buffer.h"
#include "engine/sglang/request_state.h"
#include "kv/events.h"
#include "kv/sequence_blocks.h"

namespace dynosim::engine::sglang {

class PageEvents {
 public:
  explicit PageEvents(KvEventBuffer* sink) : sink_(sink) {}

  bool enabled() const { return sink_ != nullptr; }
  void BeginPass(std::uint64_t pass) {
    if (sink_ != nullptr) {
      sink_->BeginPass(pass);
    }
  }
  // The first `to` pages of the request are complete.
  void Store(RequestState& r, std::uint64_t to);
  // Copies of pages [from, to) were given back; only announced ones count.
  void Drop(RequestState& r, std::uint64_t from, std::uint64_t to);
  // Where the tree notes what it evicts.
  std::vector<kv::BlockName>* evicted() { return sink_ == nullptr ? nullptr : &freed_; }
  // Reports what was dropped or evicted since the last call.
  void Flush();

 private:
  KvEventBuffer* sink_;
  FlatMap<kv::BlockName, std::uint32_t> copies_;
  std::vector<kv::BlockName> stored_;
  std::vector<kv::BlockName> freed_;
  std::vector<kv::BlockName> removed_;
};

}  // namespace dynosim::engine::sglang
