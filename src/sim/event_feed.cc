// SPDX-License-Identifier: Apache-2.0
#include "sim/event_feed.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <vector>

#include "engine/kv_event_buffer.h"
#include "engine/worker.h"
#include "kv/events.h"
#include "router/presence_index.h"

namespace dynosim::sim {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

void EventFeed::AddWorker(engine::Worker& worker) {
  workers_.push_back(&worker);
  hidden_ms_.push_back(kNever);
  delayed_.emplace_back();
}

// Takes the events of passes up to `last_pass`, all at one time or each at the end of its pass.
void EventFeed::Take(std::uint32_t id, std::uint64_t last_pass, const double* at_ms) {
  engine::Worker& worker = *workers_[id];
  for (std::uint32_t rank = 0; rank < worker.ranks(); ++rank) {
    engine::KvEventBuffer& buffer = worker.kv_buffer(rank);
    const std::uint32_t target = id * worker.ranks() + rank;
    std::size_t taken = 0;
    for (const engine::KvEventBuffer::Record& record : buffer.records()) {
      if (record.pass > last_pass) {
        break;
      }
      ++taken;
      const auto blocks = buffer.blocks(record);
      const bool stored = record.kind == kv::KvEvent::Kind::kStored;
      if (lag_ms_ > 0.0) {
        const double visible_ms = at_ms != nullptr ? *at_ms : worker.log().EndMs(record.pass);
        delayed_[id].push_back(
            {visible_ms + lag_ms_, target, stored, {blocks.begin(), blocks.end()}});
      } else if (stored) {
        router_.OnStored(target, blocks);
      } else {
        router_.OnRemoved(target, blocks);
      }
    }
    if (taken > 0) {
      buffer.Drop(taken);
    }
  }
}

void EventFeed::Collect(std::uint32_t id, double now_ms) {
  Take(id, workers_[id]->LastEnded(now_ms), nullptr);
  hidden_ms_[id] = workers_[id]->NextHiddenEventMs(any_event_);
}

void EventFeed::CollectCommand(std::uint32_t id, double now_ms) {
  Take(id, workers_[id]->LastEnded(now_ms), &now_ms);
}

void EventFeed::AppendHeldGroups(std::vector<std::uint32_t>& groups) const {
  const auto append = [&](std::span<const kv::BlockName> blocks) {
    for (const kv::BlockName block : blocks) {
      groups.push_back(router::PresenceIndex::GroupOf(block));
    }
  };
  for (engine::Worker* const worker : workers_) {
    for (std::uint32_t rank = 0; rank < worker->ranks(); ++rank) {
      const engine::KvEventBuffer& buffer = worker->kv_buffer(rank);
      for (const engine::KvEventBuffer::Record& record : buffer.records()) {
        append(buffer.blocks(record));
      }
    }
  }
  for (const std::deque<Delayed>& events : delayed_) {
    for (const Delayed& event : events) {
      append(event.blocks);
    }
  }
}

void EventFeed::Sync(double now_ms) {
  for (std::uint32_t id = 0; id < workers_.size(); ++id) {
    if (hidden_ms_[id] <= now_ms) {
      workers_[id]->Advance(now_ms);
      Collect(id, now_ms);
    }
  }
  if (lag_ms_ <= 0.0) {
    return;
  }
  for (std::deque<Delayed>& events : delayed_) {
    for (; !events.empty() && events.front().due_ms <= now_ms; events.pop_front()) {
      const Delayed& event = events.front();
      if (event.stored) {
        router_.OnStored(event.target, event.blocks);
      } else {
        router_.OnRemoved(event.target, event.blocks);
      }
    }
  }
}

}  // namespace dynosim::sim
