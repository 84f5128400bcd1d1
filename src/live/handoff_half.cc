// SPDX-License-Identifier: Apache-2.0
#include "live/handoff_half.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/effects.h"
#include "engine/settings.h"
#include "engine/transfer.h"
#include "live/engine_host.h"
#include "live/hosted_worker.h"
#include "live/live_request.h"
#include "live/worker_driver.h"
#include "workload/request.h"

namespace dynosim::live {

namespace {

constexpr double kNothingDue = std::numeric_limits<double>::infinity();
constexpr const char* kTimedOut = "the handoff took longer than its timeout";

// The handoffs of a worker, in order of their deadlines.
template <class Entry>
class Sessions {
 public:
  Entry& Add(std::uint32_t id, std::uint64_t stream, double deadline_ms) {
    ids_[stream] = id;
    deadlines_.emplace_back(deadline_ms, id);
    Entry& entry = entries_[id];
    entry.stream = stream;
    return entry;
  }
  Entry* Find(std::uint32_t id) {
    const auto found = entries_.find(id);
    return found == entries_.end() ? nullptr : &found->second;
  }
  std::optional<std::uint32_t> IdOf(std::uint64_t stream) const {
    const auto found = ids_.find(stream);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  void Erase(std::uint32_t id) {
    if (const auto found = entries_.find(id); found != entries_.end()) {
      ids_.erase(found->second.stream);
      entries_.erase(found);
    }
  }
  const std::map<std::uint32_t, Entry>& entries() const { return entries_; }

  // The first whose deadline has come and that is not done with the handoff.
  std::optional<std::uint32_t> TakeLate(double now_ms) {
    while (!deadlines_.empty()) {
      const auto [deadline_ms, id] = deadlines_.front();
      const Entry* entry = Find(id);
      const bool open = entry != nullptr && !entry->done;
      if (open && deadline_ms > now_ms) {
        return std::nullopt;
      }
      deadlines_.pop_front();
      if (open) {
        return id;
      }
    }
    return std::nullopt;
  }
  // May be that of one that has ended.
  double NextDeadlineMs() const {
    return deadlines_.empty() ? kNothingDue : deadlines_.front().first;
  }

 private:
  std::map<std::uint32_t, Entry> entries_;
  std::map<std::uint64_t, std::uint32_t> ids_;
  std::deque<std::pair<double, std::uint32_t>> deadlines_;
};

// What both halves have in common: entries end with their request.
template <class Entry>
class Half : public HandoffHalf {
 public:
  Half(const engine::EngineSettings& engine, double timeout_ms, SharedRequests& requests)
      : engine_(engine), timeout_ms_(timeout_ms), requests_(requests) {}

  void Cancel(std::uint64_t stream, double now_ms) override {
    if (const auto id = sessions_.IdOf(stream)) {
      Drop(*id, now_ms);
    }
  }
  void Cancel(std::uint32_t request, double now_ms) override { Drop(request, now_ms); }

  void OnRankPass(std::uint32_t /*place*/, const RankPass& pass, double /*now_ms*/) override {
    for (const engine::Signal& signal : pass.effects.signals) {
      if (signal.kind != engine::Signal::Kind::kFirstToken) {
        sessions_.Erase(signal.request);
      }
    }
  }

 protected:
  struct Added {
    workload::Request request;
    std::uint32_t rank = 0;
    Entry& entry;
  };
  Added Add(std::uint64_t stream, std::uint32_t rank, std::shared_ptr<const LiveRequest> request,
            double entered_ms, double now_ms) {
    rank = rank == workload::kNone ? worker().TakeTurn() : rank;
    const workload::Request added = requests_.Add(std::move(request), now_ms);
    worker().Begin(added.id, stream, rank, entered_ms);
    requests_.Drop(added.id);  // from here on the worker alone holds it
    Entry& entry = sessions_.Add(added.id, stream, now_ms + timeout_ms_);
    entry.rank = rank;
    return {.request = added, .rank = rank, .entry = entry};
  }
  WorkerDriver& driver() const { return worker().driver(); }
  bool Busy() const { return driver().NextMs().has_value(); }

  // Takes a request out of the worker in whatever state it is.
  virtual void Drop(std::uint32_t id, double now_ms) {
    if (const Entry* entry = sessions_.Find(id)) {
      driver().Cancel(id, entry->rank, now_ms);
      End(id, true);
    }
  }
  void End(std::uint32_t id, bool aborted) {
    sessions_.Erase(id);
    worker().Abandon(id, aborted);
  }
  void Fail(std::uint32_t id, const char* why, double now_ms) {
    worker().Tell(StreamEvent::Kind::kFailed, id, why, now_ms);
    Drop(id, now_ms);
  }
  void FailLate(double now_ms) {
    while (const auto late = sessions_.TakeLate(now_ms)) {
      Fail(*late, kTimedOut, now_ms);
    }
  }

  const engine::EngineSettings& engine_;
  double timeout_ms_;
  SharedRequests& requests_;
  Sessions<Entry> sessions_;
};

struct HeldPrompt {
  std::uint64_t stream = 0;
  std::uint32_t rank = 0;
  bool done = false;  // to be released
};

class PrefillHalf final : public Half<HeldPrompt> {
 public:
  using Half::Half;

  void Submit(std::uint64_t stream, std::uint32_t rank, std::shared_ptr<const LiveRequest> request,
              double at_ms) override {
    const Added added = Add(stream, rank, std::move(request), at_ms, at_ms);
    workload::Request prompt = added.request;
    prompt.output_tokens = std::min<std::uint64_t>(1, prompt.output_tokens);
    driver().Submit(prompt, added.rank, at_ms);
  }

  void Proceed(std::uint64_t stream, const engine::TransferTerms& /*terms*/,
               double /*at_ms*/) override {
    const auto id = sessions_.IdOf(stream);
    if (id && !std::exchange(sessions_.Find(*id)->done, true)) {
      released_.push_back(*id);
    }
  }

  void OnPassEnd(std::uint32_t /*place*/, double now_ms) override {
    for (std::uint32_t rank = 0; rank < driver().ranks(); ++rank) {
      for (const std::uint32_t id : driver().worker().Effects(rank).held) {
        worker().Tell(StreamEvent::Kind::kHeld, id, "", now_ms);
      }
    }
  }

  void Act(double now_ms) override {
    if (!Busy()) {
      for (const std::uint32_t id : std::exchange(released_, {})) {
        if (const HeldPrompt* held = sessions_.Find(id)) {
          driver().ReleaseSource(id, held->rank);
          worker().Tell(StreamEvent::Kind::kFinished, id, "", now_ms);
          End(id, false);
        }
      }
    }
    FailLate(now_ms);
  }

  double NextMs() const override { return sessions_.NextDeadlineMs(); }
  void Unstick(double /*now_ms*/) override {}  // a source rank frees itself

 private:
  std::vector<std::uint32_t> released_;
};

struct Reservation {
  std::uint64_t stream = 0;
  std::uint32_t rank = 0;
  engine::TransferTerms terms;
  bool held = false;     // the source has the prompt
  bool granted = false;  // there are blocks for it
  std::uint64_t fresh_blocks = 0;
  double ready_ms = kNothingDue;  // when the prompt has come
  bool done = false;              // it decodes
};

class DecodeHalf final : public Half<Reservation> {
 public:
  using Half::Half;

  void Submit(std::uint64_t stream, std::uint32_t rank, std::shared_ptr<const LiveRequest> request,
              double at_ms) override {
    const HandoffTerms terms = request->handoff.value_or(HandoffTerms{});
    const Added added = Add(stream, rank, std::move(request), at_ms - terms.age_ms, at_ms);
    added.entry.held = terms.held;
    added.entry.terms = terms.transfer;
    engine::Rejection why;
    if (!driver().QueueReservation(added.request, added.rank, at_ms, why)) {
      worker().Tell(StreamEvent::Kind::kRejected, added.request.id, why.Text(), at_ms);
      End(added.request.id, false);
    } else if (!Busy()) {
      Attempt(added.rank, at_ms);
    }
  }

  void Proceed(std::uint64_t stream, const engine::TransferTerms& terms, double at_ms) override {
    const auto id = sessions_.IdOf(stream);
    Reservation* entry = id ? sessions_.Find(*id) : nullptr;
    if (entry != nullptr && entry->granted && !std::exchange(entry->held, true)) {
      entry->terms = terms;
      StartTransfer(*id, *entry, at_ms);
    }
  }

  void OnPassEnd(std::uint32_t /*place*/, double now_ms) override {
    for (std::uint32_t rank = 0; rank < driver().ranks(); ++rank) {
      Attempt(rank, now_ms);
    }
  }

  void Act(double now_ms) override {
    while (!transfers_.empty() && transfers_.begin()->first <= now_ms) {
      arrived_.push_back(transfers_.begin()->second);
      transfers_.erase(transfers_.begin());
    }
    if (!Busy()) {
      for (const std::uint32_t id : std::exchange(arrived_, {})) {
        if (Reservation* entry = sessions_.Find(id)) {
          driver().Activate(id, entry->rank);
          entry->done = true;
          worker().Tell(StreamEvent::Kind::kActive, id, "", now_ms);
          Attempt(entry->rank, now_ms);
        }
      }
    }
    FailLate(now_ms);
  }

  double NextMs() const override {
    return std::min(transfers_.empty() ? kNothingDue : transfers_.begin()->first,
                    sessions_.NextDeadlineMs());
  }

  void Unstick(double now_ms) override {
    const auto& entries = sessions_.entries();
    const bool awaited = std::ranges::any_of(
        entries, [](const auto& item) { return item.second.granted && !item.second.done; });
    if (entries.empty() || awaited || driver().Unstick(now_ms)) {
      return;
    }
    std::vector<std::uint32_t> held;
    for (const auto& [id, entry] : entries) {
      held.push_back(id);
    }
    for (const std::uint32_t id : held) {
      Fail(id, "the worker cannot go on with this request", now_ms);
    }
  }

 private:
  void Attempt(std::uint32_t rank, double now_ms) {
    const std::optional<engine::Grant> grant = driver().TryReserve(rank);
    if (!grant) {
      return;
    }
    Reservation& entry = *sessions_.Find(grant->request);
    entry.granted = true;
    entry.fresh_blocks = grant->fresh_blocks;
    worker().Tell(StreamEvent::Kind::kReserved, grant->request, "", now_ms);
    if (entry.held) {
      StartTransfer(grant->request, entry, now_ms);
    }
  }

  void StartTransfer(std::uint32_t id, Reservation& entry, double now_ms) {
    const std::uint64_t prompt = requests_.table().Find(id)->prompt.size();
    entry.ready_ms =
        now_ms + engine::TransferMs(entry.terms, engine_.block_size, prompt, entry.fresh_blocks);
    transfers_.insert({entry.ready_ms, id});
  }

  void Drop(std::uint32_t id, double now_ms) override {
    const Reservation* entry = sessions_.Find(id);
    if (entry == nullptr) {
      return;
    }
    const std::uint32_t rank = entry->rank;
    transfers_.erase({entry->ready_ms, id});
    std::erase(arrived_, id);
    Half::Drop(id, now_ms);
    if (!Busy()) {
      Attempt(rank, now_ms);
    }
  }

  std::set<std::pair<double, std::uint32_t>> transfers_;  // by their end
  std::vector<std::uint32_t> arrived_;                    // they wait for the end of the pass
};

}  // namespace

std::unique_ptr<HandoffHalf> HandoffHalf::Make(const engine::EngineSettings& engine,
                                               double timeout_ms, SharedRequests& requests) {
  if (engine.worker_role == engine::WorkerRole::kPrefill) {
    return std::make_unique<PrefillHalf>(engine, timeout_ms, requests);
  }
  return std::make_unique<DecodeHalf>(engine, timeout_ms, requests);
}

}  // namespace dynosim::live
