// SPDX-License-Identifier: Apache-2.0
// Collects the KV events of one rank together with the pass that produced them; they become visible
// when that pass ends (chapter 10, section 5.7).
#pragma once

#include <cstdint>
#include <vector>

#include "kv/block_pool.h"
#include "kv/events.h"

namespace dynosim::engine {

class KvEventBuffer final : public kv::EventSink {
 public:
  struct Entry {
    std::uint64_t pass = 0;
    kv::KvEvent event;
  };

  explicit KvEventBuffer(std::uint32_t dp_rank) : dp_rank_(dp_rank) {}

  void BeginPass(std::uint64_t pass) { pass_ = pass; }
  std::vector<Entry>& entries() { return entries_; }

  void OnStored(std::uint32_t request, std::uint32_t first_block,
                const std::vector<kv::BlockName>& blocks) override {
    entries_.push_back({pass_,
                        {.kind = kv::KvEvent::Kind::kStored,
                         .dp_rank = dp_rank_,
                         .event_id = next_id_++,
                         .request = request,
                         .first_block = first_block,
                         .blocks = blocks}});
  }
  void OnRemoved(const std::vector<kv::BlockName>& blocks) override {
    entries_.push_back({pass_,
                        {.kind = kv::KvEvent::Kind::kRemoved,
                         .dp_rank = dp_rank_,
                         .event_id = next_id_++,
                         .blocks = blocks}});
  }

 private:
  std::uint32_t dp_rank_;
  std::uint64_t pass_ = 0;
  std::uint64_t next_id_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace dynosim::engine
