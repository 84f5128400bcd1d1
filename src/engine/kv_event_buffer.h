// SPDX-License-Identifier: Apache-2.0
// Collects the KV events of one rank together with the pass that produced them; they become visible
// when that pass ends (chapter 10, section 5.7). Block names of all events share one array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
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
  // The same without memory of its own.
  struct Record {
    std::uint64_t pass = 0;
    kv::KvEvent::Kind kind = kv::KvEvent::Kind::kStored;
    std::uint32_t request = 0;      // kStored: whose sequence the blocks are of
    std::uint32_t first_block = 0;  // kStored: place of the first one in the sequence
    std::uint64_t event_id = 0;
    std::size_t begin = 0;  // of its names
    std::size_t count = 0;
  };

  explicit KvEventBuffer(std::uint32_t dp_rank) : dp_rank_(dp_rank) {}

  void BeginPass(std::uint64_t pass) { pass_ = pass; }

  // Events in order of production; pass numbers never fall.
  std::span<const Record> records() const { return records_; }
  std::span<const kv::BlockName> blocks(const Record& record) const {
    return {names_.data() + record.begin, record.count};
  }
  std::vector<Entry> entries() const {
    std::vector<Entry> out;
    for (const Record& record : records_) {
      const auto names = blocks(record);
      out.push_back({.pass = record.pass,
                     .event = {.kind = record.kind,
                               .dp_rank = dp_rank_,
                               .event_id = record.event_id,
                               .request = record.request,
                               .first_block = record.first_block,
                               .blocks = {names.begin(), names.end()}}});
    }
    return out;
  }
  // Forgets the first `count` events.
  void Drop(std::size_t count) {
    if (count == records_.size()) {
      records_.clear();
      names_.clear();
    } else {
      records_.erase(records_.begin(), records_.begin() + static_cast<std::ptrdiff_t>(count));
    }
  }

  void OnStored(std::uint32_t request, std::uint32_t first_block,
                const std::vector<kv::BlockName>& blocks) override {
    Append({.kind = kv::KvEvent::Kind::kStored, .request = request, .first_block = first_block},
           blocks);
  }
  void OnRemoved(const std::vector<kv::BlockName>& blocks) override {
    Append({.kind = kv::KvEvent::Kind::kRemoved}, blocks);
  }

 private:
  void Append(Record record, const std::vector<kv::BlockName>& blocks) {
    record.pass = pass_;
    record.event_id = next_id_++;
    record.begin = names_.size();
    record.count = blocks.size();
    names_.insert(names_.end(), blocks.begin(), blocks.end());
    records_.push_back(record);
  }

  std::uint32_t dp_rank_;
  std::uint64_t pass_ = 0;
  std::uint64_t next_id_ = 0;
  std::vector<Record> records_;
  std::vector<kv::BlockName> names_;
};

}  // namespace dynosim::engine
