// SPDX-License-Identifier: Apache-2.0
// Steady requests: what lets a pass cost nothing per running request. A steady request needs a new
// block in passes p with p = 1 - base (mod block size) and fills one in the pass before; it ends in
// pass final_length - 1 - base. Block events of a run of passes are applied late, all at once,
// since durations do not depend on them.
#include <algorithm>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "engine/effects.h"
#include "engine/vllm/core.h"
#include "engine/vllm/request_state.h"
#include "timing/model.h"

namespace dynosim::engine::vllm {

namespace {

// Orders the heap of last passes: earliest pass first, then running order.
constexpr auto kLater = [](const auto& a, const auto& b) {
  return a.pass != b.pass ? a.pass > b.pass : a.order > b.order;
};

}  // namespace

std::uint64_t VllmCore::DueKey(const RequestState& r) const {
  const auto size = static_cast<std::int64_t>(block_size_);
  const std::int64_t key = (1 - r.base) % size;
  return static_cast<std::uint64_t>(key < 0 ? key + size : key);
}

void VllmCore::DueInsert(std::uint32_t slot) {
  RequestState& r = slots_[slot];
  const std::uint64_t key = DueKey(r);
  r.due_prev = kNoSlot;
  r.due_next = due_heads_[key];
  if (r.due_next != kNoSlot) {
    slots_[r.due_next].due_prev = slot;
  }
  due_heads_[key] = slot;
  ++due_counts_[key];
}

void VllmCore::DueRemove(std::uint32_t slot) {
  const RequestState& r = slots_[slot];
  const std::uint64_t key = DueKey(r);
  (r.due_prev == kNoSlot ? due_heads_[key] : slots_[r.due_prev].due_next) = r.due_next;
  if (r.due_next != kNoSlot) {
    slots_[r.due_next].due_prev = r.due_prev;
  }
  --due_counts_[key];
}

void VllmCore::PromoteSteady() {
  while (first_explicit_ != kNoSlot) {
    const std::uint32_t slot = first_explicit_;
    RequestState& r = slots_[slot];
    if (r.generated() == 0 || r.computed + 1 != r.length || r.allocated != r.computed) {
      return;
    }
    if (r.complete() || r.track.spans.back().last != pass_) {
      return;
    }
    r.steady = true;
    r.base = static_cast<std::int64_t>(r.computed) - static_cast<std::int64_t>(pass_);
    steady_base_sum_ += r.base;
    ++steady_count_;
    DueInsert(slot);
    const auto last = static_cast<std::int64_t>(r.final_length) - 1 - r.base;
    ends_.push_back({static_cast<std::uint64_t>(last), r.order, slot});
    std::ranges::push_heap(ends_, kLater);
    first_explicit_ = r.next;
  }
}

void VllmCore::Demote(std::uint64_t pass, bool in_pass) {
  for (std::uint32_t s = running_head_; s != first_explicit_; s = slots_[s].next) {
    RequestState& r = slots_[s];
    DueRemove(s);
    r.steady = false;
    r.computed = static_cast<std::uint64_t>(static_cast<std::int64_t>(pass) + r.base);
    r.allocated = r.computed;
    // Inside a pass the token of that pass is still to come.
    r.length = in_pass ? r.computed : r.computed + 1;
    r.track.spans.back().last = in_pass ? pass - 1 : pass;
    r.hashed_blocks = std::max<std::uint64_t>(r.hashed_blocks, r.table.cached.size());
    if (in_pass) {
      r.scheduled_pass = pass;
      r.scheduled_total = 1;
      r.scheduled_prompt = 0;
      r.scheduled_prefix = r.prompt;
    }
  }
  first_explicit_ = running_head_;
  steady_count_ = 0;
  steady_base_sum_ = 0;
  ends_.clear();
}

bool VllmCore::SteadyFits(std::uint64_t pass) const {
  if (steady_count_ > max_batched_tokens_) {
    return false;
  }
  const std::uint64_t budget = max_batched_tokens_ - steady_count_;
  std::uint64_t need = due_counts_[pass % block_size_];
  for (std::uint32_t s = first_explicit_; s != kNoSlot; s = slots_[s].next) {
    const RequestState& r = slots_[s];
    const std::uint64_t left = r.length - r.computed;
    const std::uint64_t blocks = BlocksFor(r.computed + std::min(left, budget));
    need += blocks > r.table.blocks ? blocks - r.table.blocks : 0;
  }
  return need <= pool_.free() + pool_.inactive();
}

std::uint64_t VllmCore::SteadyPasses(std::uint64_t pass, std::uint64_t limit) {
  if (steady_count_ == 0 || first_explicit_ != kNoSlot) {
    return 0;
  }
  if (steady_count_ > max_batched_tokens_) {
    return 0;
  }
  if (!waiting_.empty()) {
    // Nobody joins while all slots are taken, or while the head waits for a release that only the
    // end of a request brings.
    const bool full = running_count_ >= max_num_seqs_;
    const bool waits = head_blocked_ && pool_.duplicates() == 0 && !shares_generated_;
    if ((!full && !waits) || defer_interval_ > 1) {
      return 0;
    }
  }
  DropStaleEnds();
  limit = std::min(limit, ends_.front().pass - pass);
  const std::uint64_t room = pool_.free() + pool_.inactive();
  if (steady_count_ * (limit / block_size_ + 1) <= room) {
    return limit;
  }
  std::uint64_t need = 0;
  for (std::uint64_t i = 1; i <= limit; ++i) {
    need += due_counts_[(pass + i) % block_size_];
    if (need > room) {
      return i - 1;
    }
  }
  return limit;
}

void VllmCore::SteadyDurationsMs(std::uint64_t pass, std::span<double> out) const {
  const std::uint64_t context =
      static_cast<std::uint64_t>(steady_base_sum_) + steady_count_ * (pass + 1);
  timer_.DecodeRunMs({.requests = steady_count_,
                      .context_tokens = context,
                      .capacity_tokens = pool_.capacity() * block_size_},
                     out);
}

std::uint64_t VllmCore::SteadyRemovalPass(std::uint64_t through) const {
  const std::uint64_t free = pool_.free();
  const std::uint64_t passes = through > applied_pass_ ? through - applied_pass_ : 0;
  if (steady_count_ * (passes / block_size_ + 1) <= free) {
    return through + 1;
  }
  std::uint64_t need = 0;
  for (std::uint64_t p = applied_pass_ + 1; p <= through; ++p) {
    need += due_counts_[p % block_size_];
    if (need > free) {
      return p;
    }
  }
  return through + 1;
}

void VllmCore::AdvanceSteady(std::uint64_t pass, PassEffects& effects) {
  const std::uint64_t passes = pass - pass_;
  effects.decode_forwards += steady_count_ * passes;
  effects.decode_tokens += steady_count_ * passes;
  ApplySteadyBlocks(pass);
  effects.had_effect = effects.had_effect || steady_count_ > 0;
  pass_ = pass;
  FinishSteady(pass, effects);
  if (waiting_.empty()) {
    capacity_bound_ = false;
  }
}

void VllmCore::ApplySteadyBlocks(std::uint64_t through) {
  for (std::uint64_t p = applied_pass_ + 1; p <= through; ++p) {
    const std::uint32_t grow = due_heads_[p % block_size_];
    const std::uint32_t fill = due_heads_[(p + 1) % block_size_];
    if (grow == kNoSlot && fill == kNoSlot) {
      continue;
    }
    if (options_.events == nullptr && !shares_generated_) {
      // Without observers the order inside a pass cannot be told.
      for (std::uint32_t s = grow; s != kNoSlot; s = slots_[s].due_next) {
        ApplyDue(s, p);
      }
      for (std::uint32_t s = fill; s != kNoSlot; s = slots_[s].due_next) {
        ApplyDue(s, p);
      }
      continue;
    }
    if (options_.events != nullptr) {
      options_.events->BeginPass(p);
    }
    due_scratch_.clear();
    for (std::uint32_t s = grow; s != kNoSlot; s = slots_[s].due_next) {
      due_scratch_.push_back(s);
    }
    for (std::uint32_t s = fill; s != kNoSlot; s = slots_[s].due_next) {
      due_scratch_.push_back(s);
    }
    std::ranges::sort(due_scratch_, {}, [&](std::uint32_t s) { return slots_[s].order; });
    for (const std::uint32_t s : due_scratch_) {
      ApplyDue(s, p);
    }
  }
  applied_pass_ = std::max(applied_pass_, through);
}

void VllmCore::ApplyDue(std::uint32_t slot, std::uint64_t pass) {
  RequestState& r = slots_[slot];
  const auto computed = static_cast<std::uint64_t>(static_cast<std::int64_t>(pass) + r.base);
  if (computed % block_size_ == 0) {
    if (prefix_caching_) {
      pool_.Publish(r.table, r.names, computed / block_size_, r.id);
    }
    return;
  }
  pool_.AllocateOne(r.table);
  pool_.FlushEvictions();
  ++running_blocks_;
}

void VllmCore::DropStaleEnds() {
  const auto stale = [&](const LastPass& e) {
    const RequestState& r = slots_[e.slot];
    return !r.steady || r.order != e.order;
  };
  while (!ends_.empty() && stale(ends_.front())) {
    std::ranges::pop_heap(ends_, kLater);
    ends_.pop_back();
  }
}

void VllmCore::FinishSteady(std::uint64_t pass, PassEffects& effects) {
  DropStaleEnds();
  while (!ends_.empty() && ends_.front().pass == pass) {
    const std::uint32_t slot = ends_.front().slot;
    std::ranges::pop_heap(ends_, kLater);
    ends_.pop_back();
    RequestState& r = slots_[slot];
    r.length = r.final_length;
    r.track.spans.back().last = pass;
    Finish(slot, effects);
    DropStaleEnds();
  }
}

}  // namespace dynosim::engine::vllm
