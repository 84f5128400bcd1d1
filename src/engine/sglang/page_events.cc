// SPDX-License-Identifier: Apache-2.0
#include "engine/sglang/page_events.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "engine/sglang/request_state.h"
#include "kv/events.h"
#include "kv/sequence_blocks.h"

namespace dynosim::engine::sglang {

namespace {

template <class F>
void ForEachName(kv::SequenceBlocks& names, std::uint64_t from, std::uint64_t to, const F& f) {
  while (from < to) {
    const kv::SequenceBlocks::Run run = names.At(static_cast<std::uint32_t>(from));
    const std::uint64_t count = std::min<std::uint64_t>(run.count, to - from);
    for (std::uint64_t i = 0; i < count; ++i) {
      f((kv::BlockName{run.group} << 32U) | (run.offset + i));
    }
    from += count;
  }
}

}  // namespace

void PageEvents::Store(RequestState& r, std::uint64_t to) {
  if (sink_ == nullptr || to <= r.announced_pages) {
    return;
  }
  stored_.clear();
  std::uint64_t page = r.announced_pages;
  std::uint64_t first = 0;
  ForEachName(r.names, page, to, [&](kv::BlockName name) {
    const bool is_new = ++copies_[name] == 1;
    if (is_new && stored_.empty()) {
      first = page;
    }
    if (is_new || !stored_.empty()) {
      stored_.push_back(name);
    }
    ++page;
  });
  r.announced_pages = to;
  if (!stored_.empty()) {
    sink_->OnStored(r.id, static_cast<std::uint32_t>(first), stored_);
  }
}

void PageEvents::Drop(RequestState& r, std::uint64_t from, std::uint64_t to) {
  if (sink_ != nullptr) {
    ForEachName(r.names, from, std::min(to, r.announced_pages),
                [&](kv::BlockName name) { freed_.push_back(name); });
  }
}

void PageEvents::Flush() {
  if (sink_ == nullptr || freed_.empty()) {
    return;
  }
  removed_.clear();
  for (const kv::BlockName name : freed_) {
    std::uint32_t* copies = copies_.Find(name);
    DYNO_DCHECK(copies != nullptr && *copies > 0);
    if (--*copies == 0) {
      copies_.Erase(name);
      removed_.push_back(name);
    }
  }
  freed_.clear();
  if (!removed_.empty()) {
    sink_->OnRemoved(removed_);
  }
}

}  // namespace dynosim::engine::sglang
